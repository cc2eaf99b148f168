// Finds the counter whose SHA-256, behind the challenge, begins with so many zero bits. It answers with the counter.
// A worker, so that the page stays quick; SHA-256 of our own, because crypto.subtle takes far longer for each short text.
// Source: FIPS 180-4.

const K = new Uint32Array(64);
const INITIAL = new Uint32Array(8);
{
  const isPrime = (n) => { for (let d = 2; d * d <= n; d += 1) if (n % d === 0) return false; return true; };
  const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
  for (let n = 2, i = 0; i < 64; n += 1) {
    if (!isPrime(n)) continue;
    if (i < 8) INITIAL[i] = fraction(Math.sqrt(n));
    K[i] = fraction(Math.cbrt(n));
    i += 1;
  }
}
const W = new Uint32Array(64);

/** Mixes one block of 64 bytes into the state. */
function mix(state, bytes, from) {
  for (let i = 0; i < 16; i += 1) {
    const at = from + i * 4;
    W[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  }
  for (let i = 16; i < 64; i += 1) {
    const x = W[i - 15];
    const y = W[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    W[i] = (W[i - 16] + s0 + W[i - 7] + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

function sha256(state, text) {
  const length = text.length;
  const bytes = new Uint8Array(((length + 8) >> 6 << 6) + 64);
  for (let i = 0; i < length; i += 1) bytes[i] = text.charCodeAt(i);
  bytes[length] = 0x80;
  new DataView(bytes.buffer).setUint32(bytes.length - 4, length * 8);
  state.set(INITIAL);
  for (let from = 0; from < bytes.length; from += 64) mix(state, bytes, from);
}

self.addEventListener("message", (event) => {
  const { challenge, bits } = event.data;
  const state = new Uint32Array(8);
  for (let counter = 0; ; counter += 1) {
    sha256(state, `${challenge}.${counter}`);
    if (state[0] >>> (32 - bits) === 0) {
      self.postMessage(String(counter));
      return;
    }
  }
});
