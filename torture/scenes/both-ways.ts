/** Messages of one host, or of both at once, over several QPs: traffic of the scenes about cables. */
import { connect, type Ended, requestsOf, type Side, type Stage, Traffic } from './language/index.ts';

export interface Messages {
  readonly qpCount: number;
  /** Opcodes of each QP of a side. */
  readonly opcodes: readonly number[];
  readonly lengthBytes: number;
  readonly mtuCode: number;
  /** Whether node 1 sends requests as well. */
  readonly isTwoWay: boolean;
}

export interface Outcome {
  /** When the first message was posted. */
  readonly fromPs: number;
  /** Ends of own requests, by number, then of receives. */
  readonly ended: readonly Ended[];
  /** Messages of the peer whose bytes are not here, by number. */
  readonly missing: readonly number[];
  /** Own READs whose bytes have not arrived. */
  readonly misread: readonly number[];
}

interface Manner {
  readonly timeoutCode: number;
  wait(side: Side, count: number): Promise<readonly Ended[]>;
  /** Time from the last completion to the comparison of memory: an acknowledged WRITE may still be in flight. */
  readonly settleMs: number;
}

export const countOf = ({ qpCount, opcodes }: Pick<Messages, 'qpCount' | 'opcodes'>): number =>
  qpCount * opcodes.length;

export async function playBothWays(stage: Stage<Messages>, manner: Manner): Promise<Outcome> {
  const { qpCount, opcodes, lengthBytes, mtuCode, isTwoWay } = stage.args;
  const all = requestsOf(opcodes, qpCount, lengthBytes);
  const traffic = new Traffic(stage.node, [all, isTwoWay ? all : []]);
  const side = await connect(stage, {
    ...{ areaBytes: traffic.areaBytes, qpCount, cqEntries: 2 * all.length, mtuCode },
    cap: { maxSendWr: opcodes.length, maxRecvWr: opcodes.length },
    attributes: { timeoutCode: manner.timeoutCode, retryCount: 7 },
    beforeReady: (early) => traffic.receiveAll(early),
  });
  traffic.fill(side);
  await stage.meet('filled');
  const fromPs = stage.nowPs;
  traffic.postAll(side);
  const ended = await manner.wait(side, traffic.dueCount);
  await stage.meet('over');
  await stage.sleepMs(manner.settleMs);
  return { fromPs, ended, missing: traffic.missing(side), misread: traffic.misread(side) };
}

/** Plays messages that must all arrive and succeed. */
export async function playWell(stage: Stage<Messages>, manner: Manner): Promise<void> {
  const { ended, missing, misread } = await playBothWays(stage, manner);
  stage.judgeWell(ended, stage.node === 0 || stage.args.isTwoWay ? countOf(stage.args) : 0);
  if (missing.length > 0) stage.accuse(`messages ${missing} of the peer have not come as they were sent`);
  if (misread.length > 0) stage.accuse(`READs ${misread} have brought other bytes`);
}
