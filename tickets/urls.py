from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.urls.converters import IntConverter

from portal.web.desk_prefix import desk_pages
from tickets.articles import public_views
from tickets.articles import views as article_views
from tickets.attachments import views as file_views
from tickets.bulk_jobs import views as bulk_views
from tickets.checklists import views as checklist_views
from tickets.costs import views as cost_views
from tickets.custom_fields import views as field_views
from tickets.dashboards import views as dashboard_views
from tickets.data import views as data_views
from tickets.desk import comment_views, views
from tickets.desk_export import views as desk_export_views
from tickets.groups import views as group_views
from tickets.handover import views as handover_views
from tickets.isolation_runs import views as isolation_views
from tickets.letters import views as letter_views
from tickets.linking import views as link_views
from tickets.live import views as live_views
from tickets.merging import views as merging_views
from tickets.notices import views as notice_views
from tickets.outside import views as outside_views
from tickets.public_form import views as public_form_views
from tickets.ready_answers import views as answer_views
from tickets.replies import views as reply_views
from tickets.reports import views as report_views
from tickets.requester_pages import views as page_views
from tickets.requesters import views as requester_views
from tickets.rules import views as rule_views
from tickets.saved_views import views as list_views
from tickets.search import views as search_views
from tickets.sla import views as sla_views
from tickets.snoozing import views as snooze_views
from tickets.spam import views as spam_views
from tickets.tags import views as tag_views
from tickets.time_machine import views as time_machine_views


class TicketNumber(IntConverter):
    """From 1 to 15 digits without leading zeros: what keys.py takes and a bookmark holds."""

    regex = "[1-9][0-9]{0,14}"


register_converter(TicketNumber, "ticket_number")

app_name = "tickets"

_article_pages = [
    path("", article_views.list_articles, name="articles"),
    path("new/", article_views.new_article, name="article_new"),
    path("options/", article_views.article_options, name="article_options"),
    path("sections/", article_views.edit_sections, name="article_sections"),
    path("sections/<str:section>/", article_views.edit_section, name="article_section"),
    path("sections/<str:section>/move/", article_views.move_section, name="article_section_move"),
    path("<int:number>/", article_views.article, name="article"),
    path("<int:number>/edit/", article_views.edit_article, name="article_edit"),
    path("<int:number>/publish/", article_views.publish_article, name="article_publish"),
    path("<int:number>/withdraw/", article_views.withdraw_article, name="article_withdraw"),
    path("<int:number>/delete/", article_views.delete_article, name="article_delete"),
    path("<int:number>/versions/", article_views.list_versions, name="article_versions"),
    path("<int:number>/versions/<int:version>/", article_views.show_version, name="article_version"),
    path("<int:number>/versions/<int:version>/restore/", article_views.restore_version, name="article_restore"),
]

_help_pages = [
    path("<slug:slug>/", public_views.help_home, name="help"),
    path("<slug:slug>/suggest/", public_views.help_suggest, name="help_suggest"),
    path("<slug:slug>/<int:number>/", public_views.help_article, name="help_article"),
    path("<slug:slug>/<int:number>-<slug:words>/", public_views.help_article, name="help_article_words"),
]

_group_pages = [
    path("", group_views.groups_page, name="groups"),
    path("new/", group_views.group, name="group_new"),
    path("people/<str:user_id>/", group_views.agent, name="group_agent"),
    path("<slug:group_id>/", group_views.group, name="group"),
    path("<slug:group_id>/delete/", group_views.delete, name="group_delete"),
]

_answer_pages = [
    path("", answer_views.list_answers, name="answers"),
    path("new/", answer_views.new_answer, name="answer_new"),
    path("options/", answer_views.answer_options, name="answer_options"),
    path("<str:answer>/", answer_views.edit_answer, name="answer"),
    path("<str:answer>/delete/", answer_views.delete_answer, name="answer_delete"),
]

_rule_pages = [
    path("", rule_views.list_rules, name="rules"),
    path("new/", rule_views.new_rule, name="rule_new"),
    path("<str:rule>/", rule_views.rule_page, name="rule"),
    path("<str:rule>/edit/", rule_views.edit_rule, name="rule_edit"),
    path("<str:rule>/switch/", rule_views.switch, name="rule_switch"),
    path("<str:rule>/delete/", rule_views.delete, name="rule_delete"),
    path("<str:rule>/runs/", rule_views.list_runs, name="rule_runs"),
    path("<str:rule>/runs/<str:run>/", rule_views.run_page, name="rule_run"),
    path("<str:rule>/rehearsal/", rule_views.rehearsal_page, name="rule_rehearsal"),
    path("<str:rule>/rehearsal/cancel/", rule_views.cancel_rehearsal, name="rule_rehearsal_cancel"),
]

_view_pages = [
    path("", list_views.list_views, name="views"),
    path("new/", list_views.new_view, name="view_new"),
    path("counts/", list_views.counts, name="view_counts"),
    path("<str:view>/", list_views.edit_view, name="view"),
    path("<str:view>/move/", list_views.move_view, name="view_move"),
    path("<str:view>/star/", list_views.star_view, name="view_star"),
    path("<str:view>/delete/", list_views.delete_view, name="view_delete"),
]

_ticket_pages: list[URLPattern | URLResolver] = [
    path("", views.queue, name="queue"),
    path("<ticket_number:number>/", views.ticket, name="ticket"),  # tried before the others: it is asked for most
    path("new/", views.new, name="new"),
    path("export/", data_views.export, name="export"),
    path("updates/", views.queue_updates, name="updates"),
    path("live/", live_views.renew, name="live"),
    path("preview/", comment_views.preview, name="preview"),
    path("answers/", include(_answer_pages)),
    path("display/", views.choose_display, name="display"),
    path("views/", include(_view_pages)),
    path("away/", group_views.away, name="away"),
    path("bulk/", views.bulk_change, name="bulk"),
    path("bulk/undo/", views.undo, name="undo"),
    path("bulk/edit/", bulk_views.edit, name="bulk_edit"),
    path("bulk/jobs/", bulk_views.jobs, name="bulk_jobs"),
    path("bulk/jobs/<str:job>/", bulk_views.job, name="bulk_job"),
    path("bulk/jobs/<str:job>/cancel/", bulk_views.cancel, name="bulk_cancel"),
    path("bulk/jobs/<str:job>/undo/", bulk_views.undo, name="bulk_job_undo"),
    path("dashboard/verify/", dashboard_views.verify, name="verify"),
    path("dashboard/verify/stop/", dashboard_views.stop_verifying, name="stop-verifying"),
    path("dashboard/verified/", dashboard_views.verified, name="verified"),
    path("files/", file_views.upload, name="upload"),
    path("files/usage/", file_views.usage, name="files_usage"),
    path("people/", views.people, name="people"),
    path("people/options/", notice_views.people_options, name="people_options"),
    path("people/names/", notice_views.names, name="names"),
    path("past/", time_machine_views.past_queue, name="past"),
    path("past/restore/", time_machine_views.restore, name="past_restore"),
    path("<ticket_number:number>/past/", time_machine_views.past_ticket, name="past_ticket"),
    path("handover/", handover_views.handovers, name="handovers"),
    path("handover/<str:user>/", handover_views.hand_on, name="handover"),
    path("reports/", report_views.report_page, name="reports"),
    path("reports/letter/", report_views.letter_page, name="monthly-letter"),
    path("reports/mail/", report_views.choose_mail, name="report-mail"),
    path("reports/file/", report_views.report_file, name="report-file"),
    path("dashboard/", dashboard_views.dashboard_page, name="dashboard"),
    path("<ticket_number:number>/next/", list_views.step, name="ticket_next"),
    path("<ticket_number:number>/previous/", list_views.step, {"backwards": True}, name="ticket_previous"),
    path("<ticket_number:number>/updates/", views.ticket_updates, name="ticket_updates"),
    path("<ticket_number:number>/comment/", views.comment, name="comment"),
    path("<ticket_number:number>/comments/<str:entry>/edit/", comment_views.edit, name="comment_edit"),
    path("<ticket_number:number>/comments/<str:entry>/delete/", comment_views.delete, name="comment_delete"),
    path("<ticket_number:number>/answers/<str:answer>/", answer_views.fill_answer, name="answer_fill"),
    path("<ticket_number:number>/comments/<str:entry>/split/", link_views.split, name="comment_split"),
    path("<ticket_number:number>/linked/", link_views.linked, name="linked"),
    path("<ticket_number:number>/linked/add/", link_views.link, name="link"),
    path("<ticket_number:number>/linked/remove/", link_views.unlink, name="unlink"),
    path("<ticket_number:number>/tick/", checklist_views.tick, name="tick"),
    path("<ticket_number:number>/redact/", data_views.redact, name="redact"),
    path("<ticket_number:number>/follow/", notice_views.follow, name="follow"),
    path("<ticket_number:number>/followers/", notice_views.followers, name="followers"),
    path("<ticket_number:number>/links/end/", reply_views.end_links_of_ticket, name="links_end"),
    path("<ticket_number:number>/files/", file_views.all_files, name="files"),
    path("<ticket_number:number>/files/<str:file_id>/", file_views.file, name="file"),
    path("<ticket_number:number>/files/<str:file_id>/preview/", file_views.preview, name="file_preview"),
    path("<ticket_number:number>/files/<str:file_id>/remove/", file_views.remove, name="file_remove"),
    path("<ticket_number:number>/merge/", merging_views.merge, name="merge"),
    path("tags/", tag_views.all_tags, name="tags"),
    path("tags/edit/", tag_views.edit_tag, name="tag_edit"),
    path("tags/options/", tag_views.tag_options, name="tag_options"),
    path("spam/", spam_views.all_spam, name="spam"),
    path("spam/mark/", spam_views.mark_many, name="spam_many"),
    path("<ticket_number:number>/spam/", spam_views.mark, name="spam_mark"),
    path("<ticket_number:number>/spam/take-back/", spam_views.unmark, name="spam_unmark"),
    path("<ticket_number:number>/snooze/", snooze_views.snooze, name="snooze"),
    path("<ticket_number:number>/wake/", snooze_views.wake, name="wake"),
    path("<ticket_number:number>/separate/", merging_views.separate, name="separate"),
    path("<ticket_number:number>/edit/", views.edit, name="edit"),
    path("<ticket_number:number>/change/", views.change, name="change"),
    path("<ticket_number:number>/assign/", views.assign, name="assign"),
    path("<ticket_number:number>/requester/", views.requester_of_ticket, name="requester_of_ticket"),
]

_requester_pages = [
    path("", requester_views.list_requesters, name="requesters"),
    path("new/", requester_views.new_requester, name="requester_new"),
    path("options/", requester_views.requester_options, name="requester_options"),
    path("<str:requester>/", requester_views.requester, name="requester"),
    path("<str:requester>/edit/", requester_views.edit_requester, name="requester_edit"),
    path("<str:requester>/merge/", requester_views.merge_requester, name="requester_merge"),
    path("<str:requester>/separate/", requester_views.separate_requester, name="requester_separate"),
    path("<str:requester>/links/end/", requester_views.end_links, name="requester_links_end"),
    path("<str:requester>/beside/<ticket_number:number>/", requester_views.beside_ticket, name="requester_beside"),
]

_inbox_pages = [
    path("", notice_views.inbox_page, name="inbox"),
    path("mark/", notice_views.mark, name="inbox_mark"),
    path("seen/", notice_views.seen, name="inbox_seen"),
]

_letter_pages = [
    path("", letter_views.all_letters, name="letters"),
    path("waiting/", letter_views.waiting_letters, name="letters_waiting"),
    path("held/file/", letter_views.file_held, name="letters_file_held"),
    path("reconcile/", letter_views.reconcile, name="letters_reconcile"),
    path("<str:letter>/", letter_views.letter, name="letter"),
    path("<str:letter>/original/", letter_views.original_letter, name="letter_original"),
    path("<str:letter>/raw/", letter_views.raw_letter, name="letter_raw"),
    path("<str:letter>/file/", letter_views.file_letter, name="letter_file"),
    path("<str:letter>/block/", letter_views.block_sender, name="letter_block"),
    path("<str:letter>/discard/", letter_views.discard_letter, name="letter_discard"),
]

_search_pages = [
    path("", search_views.search, name="search"),
    path("suggest/", search_views.suggest, name="suggest"),
    path("commands/", search_views.commands, name="commands"),
]

_person_pages = [
    path("", data_views.person_page, name="person"),
    path("export/", data_views.export_person, name="person_export"),
    path("erase/", data_views.erase_person, name="person_erase"),
]

_export_pages = [
    path("", desk_export_views.export_page, name="desk_export"),
    path("ask/", desk_export_views.ask, name="desk_export_ask"),
    path("cancel/", desk_export_views.cancel, name="desk_export_cancel"),
    path("download/", desk_export_views.download, name="desk_export_download"),
    path("files/<str:part>/", desk_export_views.files, name="desk_export_files"),
]

_isolation_pages = [
    path("", isolation_views.isolation_page, name="isolation"),
    path("attack/", isolation_views.attack, name="isolation_attack"),
    path("stop/", isolation_views.stop, name="isolation_stop"),
    path("files/<str:run>/", isolation_views.download, name="isolation_file"),
]

_field_pages = [
    path("", field_views.definitions_page, name="custom_fields"),
    path("new/", field_views.new_field, name="custom_field_new"),
    path("move/", field_views.move, name="custom_fields_move"),
    path("kinds/new/", field_views.new_kind, name="ticket_kind_new"),
    path("kinds/<slug:kind_id>/", field_views.kind, name="ticket_kind"),
    path("<slug:field_id>/", field_views.field, name="custom_field"),
]
_mail_pages = [
    path("", reply_views.settings_page, name="mail_settings"),
    path("sender/", reply_views.choose_sender, name="mail_sender"),
    path("check/", reply_views.check_domain, name="mail_check"),
    path("links/end/", reply_views.end_all_links, name="mail_links_end"),
]

_public_pages = [
    path("", public_form_views.settings_page, name="public_pages"),
    path("looks/", public_form_views.change_looks, name="public_looks"),
    path("preview/", public_form_views.preview, name="public_form_preview"),
]

# Pages of requesters outside, by a signed link. The page of one ticket is at the bare token.
_guest_pages = [
    path("live/<str:token>/", live_views.look, name="r_live"),
    path("all/<str:token>/", page_views.all_tickets, name="r_all"),
    path("all/<str:token>/<ticket_number:number>/", page_views.one_of_all, name="r_one"),
    path("<str:token>/", page_views.ticket, name="r_ticket"),
    path("<str:token>/answer/", page_views.answer, name="r_answer"),
    path("<str:token>/close/", page_views.close, name="r_close"),
    path("<str:token>/rate/", page_views.rate, name="r_rate"),
    path("<str:token>/all/", page_views.ask_for_all, name="r_ask"),
    path("<str:token>/new/", page_views.ask_anew, name="r_new"),
    path("<str:token>/files/", page_views.upload, name="r_upload"),
    path("<str:token>/files/<str:file_id>/", page_views.file, name="r_file"),
]

urlpatterns = [
    path("forms/<slug:slug>/", public_form_views.form, name="public_form"),
    path("forms/<slug:slug>/logo/", outside_views.logo, name="logo"),
    path("forms/<slug:slug>/files/", public_form_views.upload, name="public_form_upload"),
    path("r/", include(_guest_pages)),
    path("mail/mute/<str:token>/", notice_views.mute, name="mute"),
    path("help/", include(_help_pages)),
    desk_pages(
        path("tickets/", include(_ticket_pages)),
        path("search/", include(_search_pages)),
        path("requesters/", include(_requester_pages)),
        path("inbox/", include(_inbox_pages)),
        path("articles/", include(_article_pages)),
        path("letters/", include(_letter_pages)),
        path("desk/settings/person/", include(_person_pages)),
        path("desk/settings/mail/", include(_mail_pages)),
        path("desk/settings/fields/", include(_field_pages)),
        path("desk/settings/rules/", include(_rule_pages)),
        path("desk/settings/groups/", include(_group_pages)),
        path("desk/settings/public/", include(_public_pages)),
        path("desk/settings/costs/", cost_views.costs_page, name="costs"),
        path("desk/settings/costs/file/", cost_views.costs_file, name="costs_file"),
        path("desk/settings/targets/", sla_views.sla_page, name="sla"),
        path("desk/settings/export/", include(_export_pages)),
        path("desk/settings/isolation/", include(_isolation_pages)),
    ),
]
