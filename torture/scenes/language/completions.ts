/** Completions as programs of scenes see them, with statuses by name. */
import { IBV_WC_RECV, type IbvCq, IbvWc, pollCq, wcStatusStr } from '../../../userlib/index.ts';

/** A completion as a program saw it. */
export interface Ended {
  readonly id: number;
  /** Name of the status without its prefix: SUCCESS, RETRY_EXC_ERR and so on (IBTA 11.6.2). */
  readonly status: string;
  readonly byteLen: number;
  /** The core's own time after the poll that returned it. */
  readonly atPs: number;
  readonly qpNum: number;
}

/** A completion of a receive or of a send, with all fields of receives. */
export interface Taken extends Ended {
  readonly isReceive: boolean;
  readonly srcQp: number;
  readonly immData: number;
  readonly wcFlags: number;
}

/** Polls once for up to `count` completions. */
export async function takenFrom(cq: IbvCq, count: number, nowPs: () => number): Promise<Taken[]> {
  const wcs = Array.from({ length: count }, () => new IbvWc());
  const taken = await pollCq(cq, count, wcs);
  const atPs = nowPs();
  return wcs.slice(0, taken).map(({ wrId, status, byteLen, qpNum, opcode, srcQp, immData, wcFlags }) => ({
    ...{ id: wrId, status: wcStatusStr(status), byteLen, atPs, qpNum },
    ...{ isReceive: (opcode & IBV_WC_RECV) !== 0, srcQp, immData, wcFlags },
  }));
}

export const statusesOf = (ended: readonly Ended[]): string[] => ended.map(({ status }) => status);

export const isWell = ({ status }: Ended): boolean => status === 'SUCCESS';

/** Words for completions other than SUCCESS. */
export const failuresOf = (ended: readonly Ended[]): string[] =>
  ended.flatMap((one) => (isWell(one) ? [] : [`request ${one.id} ended in ${one.status}`]));
