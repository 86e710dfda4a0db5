/**
 * The hash by which a switch spreads flows over equal paths: FNV-1a over the bytes that name a flow, from a seed, with the final mixing of
 * MurmurHash3, so that its low bits depend on all bytes. Frames of one flow take one path, which keeps their order (RFC 2992).
 *
 * RoCE v2 has a UDP source port for each QP, so that QPs of two hosts may take different paths; RoCE v1 has none.
 */
import { flowPlacesOf } from './frame-fields.ts';

const FNV_PRIME = 0x0100_0193;
const FNV_START = 0x811c_9dc5;

/** A number of 32 bits for the flow of a frame. */
export function flowHashOf(frame: Uint8Array, frameBytes: number, seed: number): number {
  let hash = mixed(FNV_START ^ seed);
  for (const [place, count] of flowPlacesOf(frame, frameBytes))
    for (let at = place; at < place + count; at++) hash = Math.imul(hash ^ frame[at]!, FNV_PRIME);
  return mixed(hash);
}

/** The finaliser of MurmurHash3 (Appleby). */
function mixed(hash: number): number {
  const once = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2_ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}
