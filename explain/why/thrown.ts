/** An error that a program threw itself although all calls and requests succeeded: its own check of received data failed. */
import type { HostEvidence } from '../../machine/evidence/index.ts';
import { GRH_BYTES } from '../../wire/index.ts';
import { counted, type Explanation, qpName } from './cause.ts';
import type { Scene } from './scene.ts';

/** A program that reads the whole GRH intends to, as for ibv_create_ah_from_wc. */
const isPartOfHeader = ({ bytes }: HostEvidence['headReads'][number]): boolean => bytes < GRH_BYTES;

/**
 * A program reads the payload of datagrams at the place of their GRH.
 * @param subject the program's next action, as a sentence to be continued
 */
export function headRead(scene: Scene, node: number, subject: string): Explanation | undefined {
  const [read] = (scene.host(node)?.headReads ?? []).filter(
    (head) => isPartOfHeader(head) && (scene.qp(node, head.qpn)?.received ?? 0) > 0,
  );
  if (read === undefined) return undefined;
  return {
    cause: 'grh-not-skipped',
    sentence: `${subject} after it had read ${counted(read.bytes, 'byte')} of the first 40 of a receive of ${qpName(node, read.qpn)}: these are for the GRH, and the payload of a datagram begins at byte 40`,
    evidence: { address: read.address, bytes: read.bytes },
    mendLine: read.line,
    advice: 'Read the payload of a UD receive from byte 40 on; wc.byte_len counts these 40 bytes, too.',
    key: `head ${node}`,
  };
}

export const thrownExplained = (scene: Scene, node: number, text: string): Explanation =>
  headRead(scene, node, `A program of host ${node} threw "${text}"`) ?? {
    cause: 'program-threw',
    sentence: `A program of host ${node} threw "${text}"; no call was refused, and no request failed`,
    evidence: { error: text },
    advice: 'The program’s own check failed: compare what it expects with what its peer sends.',
  };

/** The driver did not start: no program has run. */
export const bootFailed = (node: number, text: string): Explanation => ({
  cause: 'driver-failed',
  sentence: `The driver of host ${node} did not start: ${text}`,
  evidence: { error: text },
  advice:
    'See the faults of the run, and the kernel’s messages: the device refused a command, or did not answer.',
});
