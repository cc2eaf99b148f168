"""Declare the network of the web service: a VPC of the stack over two zones, or subnets that the operator has.

Tasks of the small size have public addresses, which only the load balancer's security group may call: a NAT gateway
costs more than they do. Those of the large size are in private subnets, with a NAT gateway in each zone. Requests to
DynamoDB and S3 take the gateway endpoints, which are free, and no NAT.

Sources: AWS, "Gateway endpoints", "Fargate task networking", "Example: VPC with servers in private subnets and NAT".
"""

from __future__ import annotations

from typing import Any, Final

from portal.deployment import parts
from portal.deployment.parts import Json, both, either, given, text_parameter
from portal.deployment.template import sub

ADDRESSES: Final = "10.20.0.0/16"
ZONES: Final = ("A", "B")
OWN, OWN_NAT, PUBLIC_TASKS, LARGE = "HasOwnNetwork", "HasNatGateways", "TasksArePublic", "IsLarge"
VPC, BALANCER_SUBNETS, TASK_SUBNETS, SIZE = "Vpc", "BalancerSubnets", "TaskSubnets", "Size"
BALANCER_GROUP, TASK_GROUP = "BalancerSecurityGroup", "TaskSecurityGroup"
PORT: Final = 8000  # of gunicorn in the image

NO_VPC, NO_SUBNET = "vpc-00000000", "subnet-00000000"  # "" could be no id, which the linter notices
_GIVEN: Final = given(VPC, NO_VPC)
PARAMETERS: Final[Json] = {
    SIZE: text_parameter(
        "small: two to four tasks of half a CPU; large: two to ten of two CPUs, in private subnets",
        "small",
        AllowedValues=["small", "large"],
    ),
    VPC: text_parameter("A VPC of yours for the web service; without it the stack makes one", NO_VPC),
    BALANCER_SUBNETS: {
        "Type": "CommaDelimitedList",
        "Description": "With Vpc: two or more public subnets, in different zones, for the load balancer",
        "Default": NO_SUBNET,
    },
    TASK_SUBNETS: {
        "Type": "CommaDelimitedList",
        "Description": "With Vpc: two or more subnets for the tasks, from which a NAT gateway or endpoints lead to AWS",
        "Default": NO_SUBNET,
    },
}
CONDITIONS: Final[Json] = {
    LARGE: {"Fn::Equals": [{"Ref": SIZE}, "large"]},
    OWN: {"Fn::And": [{"Condition": parts.HAS_IMAGE}, {"Fn::Not": [_GIVEN]}]},
    OWN_NAT: both(OWN, LARGE),
    PUBLIC_TASKS: {"Fn::And": [{"Condition": OWN}, {"Fn::Not": [{"Condition": LARGE}]}]},
}


PRIVATE_ROUTES: Final = tuple(f"PrivateDefaultRoute{zone}" for zone in ZONES)


def after_routes(condition: str, *routes: str) -> list[Json]:
    """Return tags that make a resource wait for routes where the condition holds: DependsOn takes no condition."""
    # The id of a route is `rtb-...|0.0.0.0/0`, and a tag has no such bar.
    tables = [{"Fn::Select": [0, {"Fn::Split": ["|", {"Ref": route}]}]} for route in routes]
    return [{"Key": "pooldesk:routes", "Value": either(condition, {"Fn::Join": [" ", tables]}, "given")}]


def vpc() -> Json:
    return either(OWN, {"Ref": "Network"}, {"Ref": VPC})


def balancer_subnets() -> Any:
    return either(OWN, [{"Ref": f"PublicSubnet{zone}"} for zone in ZONES], {"Ref": BALANCER_SUBNETS})


def task_subnets() -> Any:
    """Return where the tasks run: in an own network, in the public subnets if they are small."""
    own = either(LARGE, *([{"Ref": f"{kind}Subnet{zone}"} for zone in ZONES] for kind in ("Private", "Public")))
    return either(OWN, own, {"Ref": TASK_SUBNETS})


def resources() -> Json:
    found = {
        "Network": _made(
            "AWS::EC2::VPC", {"CidrBlock": ADDRESSES, "EnableDnsSupport": True, "EnableDnsHostnames": True}
        ),
        "Internet": _made("AWS::EC2::InternetGateway", {}),
        "InternetAttachment": _made(
            "AWS::EC2::VPCGatewayAttachment", {"VpcId": {"Ref": "Network"}, "InternetGatewayId": {"Ref": "Internet"}}
        ),
        "PublicRoutes": _made("AWS::EC2::RouteTable", {"VpcId": {"Ref": "Network"}}),
        "PublicDefaultRoute": _route("PublicRoutes", OWN, GatewayId={"Ref": "Internet"})
        | {"DependsOn": ["InternetAttachment"]},
    }
    for number, zone in enumerate(ZONES):
        found |= _zone(number, zone)
    tables = ["PublicRoutes", *(f"PrivateRoutes{zone}" for zone in ZONES)]
    for service in ("dynamodb", "s3"):
        found[f"{service.title()}Endpoint"] = _made(
            "AWS::EC2::VPCEndpoint",
            {
                "VpcId": {"Ref": "Network"},
                "ServiceName": sub(f"com.amazonaws.${{AWS::Region}}.{service}"),
                "VpcEndpointType": "Gateway",
                "RouteTableIds": [{"Ref": table} for table in tables],
            },
        )
    return found | _groups()


def _zone(number: int, zone: str) -> Json:
    found: Json = {}
    for kind, table, offset in (("Public", "PublicRoutes", 0), ("Private", f"PrivateRoutes{zone}", len(ZONES))):
        subnet = f"{kind}Subnet{zone}"
        found[subnet] = _made(
            "AWS::EC2::Subnet",
            {
                "VpcId": {"Ref": "Network"},
                "AvailabilityZone": {"Fn::Select": [number, {"Fn::GetAZs": ""}]},
                "CidrBlock": {"Fn::Select": [number + offset, {"Fn::Cidr": [ADDRESSES, 2 * len(ZONES), 12]}]},
                # A task asks for its public address itself.
                "MapPublicIpOnLaunch": False,
                "Tags": [{"Key": "Name", "Value": sub(f"${{AWS::StackName}}-{kind.lower()}-{zone.lower()}")}],
            },
        )
        found[f"{subnet}Routes"] = _made(
            "AWS::EC2::SubnetRouteTableAssociation", {"SubnetId": {"Ref": subnet}, "RouteTableId": {"Ref": table}}
        )
    return found | {
        f"PrivateRoutes{zone}": _made("AWS::EC2::RouteTable", {"VpcId": {"Ref": "Network"}}),
        f"NatAddress{zone}": _made("AWS::EC2::EIP", {"Domain": "vpc"}, OWN_NAT) | {"DependsOn": ["InternetAttachment"]},
        f"Nat{zone}": _made(
            "AWS::EC2::NatGateway",
            {
                "SubnetId": {"Ref": f"PublicSubnet{zone}"},
                "AllocationId": {"Fn::GetAtt": [f"NatAddress{zone}", "AllocationId"]},
            },
            OWN_NAT,
        ),
        f"PrivateDefaultRoute{zone}": _route(f"PrivateRoutes{zone}", OWN_NAT, NatGatewayId={"Ref": f"Nat{zone}"}),
    }


def _groups() -> Json:
    """Declare who may call whom: the world the load balancer, and the load balancer alone a task."""
    to_tasks = {"IpProtocol": "tcp", "FromPort": PORT, "ToPort": PORT}
    return {
        BALANCER_GROUP: _made(
            "AWS::EC2::SecurityGroup",
            {
                "GroupDescription": "The load balancer of Pooldesk",
                "VpcId": vpc(),
                "SecurityGroupIngress": [_world(80, "HTTP, which is sent on to HTTPS"), _world(443, "HTTPS")],
                # Its one way out is a rule of its own: the two groups name each other.
                "SecurityGroupEgress": [
                    {
                        "IpProtocol": "icmp",
                        "FromPort": -1,
                        "ToPort": -1,
                        "CidrIp": "127.0.0.1/32",
                        "Description": "None",
                    }
                ],
            },
            parts.HAS_IMAGE,
        ),
        f"{BALANCER_GROUP}Egress": _made(
            "AWS::EC2::SecurityGroupEgress",
            {
                "GroupId": {"Fn::GetAtt": [BALANCER_GROUP, "GroupId"]},
                "DestinationSecurityGroupId": {"Fn::GetAtt": [TASK_GROUP, "GroupId"]},
                "Description": "To the tasks",
                **to_tasks,
            },
            parts.HAS_IMAGE,
        ),
        TASK_GROUP: _made(
            "AWS::EC2::SecurityGroup",
            {
                "GroupDescription": "The web tasks of Pooldesk",
                "VpcId": vpc(),
                "SecurityGroupIngress": [
                    {
                        "SourceSecurityGroupId": {"Fn::GetAtt": [BALANCER_GROUP, "GroupId"]},
                        "Description": "From the load balancer",
                        **to_tasks,
                    }
                ],
                "SecurityGroupEgress": [_world(443, "AWS; names are asked of the VPC's own resolver")],
            },
            parts.HAS_IMAGE,
        ),
    }


def _world(port: int, description: str) -> Json:
    return {
        "IpProtocol": "tcp",
        "FromPort": port,
        "ToPort": port,
        "CidrIp": "0.0.0.0/0",
        "Description": description,
    }


def _route(table: str, condition: str, **to: Json) -> Json:
    properties = {"RouteTableId": {"Ref": table}, "DestinationCidrBlock": "0.0.0.0/0", **to}
    return _made("AWS::EC2::Route", properties, condition)


def _made(kind: str, properties: Json, condition: str = OWN) -> Json:
    made: Json = {"Type": kind, "Condition": condition}
    return made | ({"Properties": properties} if properties else {})
