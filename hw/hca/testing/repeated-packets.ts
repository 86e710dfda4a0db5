/** A second count of retransmissions: by the PSNs that a tap at the far end of a lossless cable has seen. */
import { Opcode } from '../../../wire/index.ts';
import type { Packet } from './tapped-port.ts';

const FLAG_RETRANSMISSION = 8;
const RC_OPCODE_END = 0x20;
const PSN_COUNT = 2 ** 24;
const responses: ReadonlySet<number> = new Set([
  Opcode.RC_RDMA_READ_RESPONSE_FIRST,
  Opcode.RC_RDMA_READ_RESPONSE_MIDDLE,
  Opcode.RC_RDMA_READ_RESPONSE_LAST,
  Opcode.RC_RDMA_READ_RESPONSE_ONLY,
  Opcode.RC_ATOMIC_ACKNOWLEDGE,
]);

/**
 * Compares the retransmission marks of one direction's packets, in order of arrival, with repeats found by a set of
 * PSNs.
 */
export function repeatsIn(
  packets: readonly Packet[],
  mtuBytes: number,
): { readonly marked: number; readonly again: number; readonly wrong: readonly string[] } {
  const seen = new Set<string>();
  const wrong: string[] = [];
  let marked = 0;
  let again = 0;
  for (const { qpn, psn, opcode, flags, dmaBytes } of packets) {
    const isMarked = (flags & FLAG_RETRANSMISSION) !== 0;
    if (isMarked) marked++;
    if (opcode >= RC_OPCODE_END || opcode === Opcode.RC_ACKNOWLEDGE) {
      if (isMarked) wrong.push(`opcode ${opcode} PSN ${psn}`);
      continue;
    }
    const queue = `${qpn} ${responses.has(opcode) ? 'response' : 'request'}`;
    const isAgain = seen.has(`${queue} ${psn}`);
    if (isAgain) again++;
    if (isAgain !== isMarked)
      wrong.push(`${queue} opcode ${opcode} PSN ${psn}: ${isMarked ? 'first' : 'again'}`);
    // A READ request takes the PSNs of all its responses.
    const span = opcode === Opcode.RC_RDMA_READ_REQUEST ? Math.max(1, Math.ceil(dmaBytes / mtuBytes)) : 1;
    for (let step = 0; step < span; step++) seen.add(`${queue} ${(psn + step) % PSN_COUNT}`);
  }
  return { marked, again, wrong };
}
