/**
 * Connections with attributes at the ends of their ranges: ACK time-out codes up to 31 (nearly three hours) and 0 (for ever), all
 * RNR delays, ends whose path MTUs differ, first PSNs at the wrap. What one lost packet costs, what a receive that never comes
 * costs, and which messages two unlike ends can exchange is as the standard says (IBTA 9.7.6.1.3, table 45, 9.7.4.1.6).
 */
import { psPerMs, psPerNs, psPerSecond, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_WC_REM_INV_REQ_ERR,
  IBV_WC_RNR_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type PortAttr,
  postRecv,
} from '../../userlib/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import { askerAndAnswerer, connectWithPeer, type Ended, leave, nowPs, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly about: 'timeOut' | 'rnr' | 'mtu';
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly rnrTimerCode: number;
  /** Of the asker, and of the answerer. */
  readonly mtuCodes: readonly [number, number];
  readonly firstPsn: number;
  /** Attempts of the request that are lost. */
  readonly lostCount: number;
}

interface Told {
  readonly postedPs: number;
  readonly ended: readonly Ended[];
  readonly isRight: boolean;
}

/** RNR delays by code, in µs (table 45). */
const rnrDelaysUs = [
  655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680,
  10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
] as const;

const timeOutPs = ({ timeoutCode }: Args): number => 4096 * psPerNs * 2 ** timeoutCode;
const rnrDelayPs = ({ rnrTimerCode }: Args): number => rnrDelaysUs[rnrTimerCode]! * psPerUs;
const mtuBytes = (code: number): number => 128 << code;
/** A request that waits for ever is watched so long. */
const foreverPs = psPerSecond;
/** What hardware and program take besides the reported times. */
const marginPs = 100 * psPerUs;

function draw(random: Random): SceneDraft {
  const about = (['timeOut', 'rnr', 'mtu'] as const)[random.below(3)]!;
  const psns = [0, 1, 0xff_fffd, 0xff_fffe, 0xff_ffff, 0x7f_ffff, 0x80_0000];
  const retryCount = 1 + random.below(7);
  const usual: Args = {
    about,
    opcode: [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND][random.below(3)]!,
    lengthBytes: 1 + random.below(256),
    timeoutCode: 14,
    retryCount,
    rnrRetryCount: 7,
    rnrTimerCode: 1,
    mtuCodes: [5, 5],
    firstPsn: random.chance(0.5) ? psns[random.below(psns.length)]! : random.below(1 << 24),
    lostCount: 0,
  };
  switch (about) {
    case 'timeOut': {
      const codes = [0, 30, 31, 4 + random.below(28), 4 + random.below(28)];
      const timeoutCode = codes[random.below(codes.length)]!;
      const lostCount = timeoutCode === 0 ? 1 : 1 + random.below(Math.min(3, retryCount));
      const args = { ...usual, timeoutCode, lostCount };
      const packet = random.chance(0.5) ? 'lost' : 'corrupted';
      const faults: FaultEntry[] = [{ packet, nth: `2-${1 + lostCount}`, node: random.below(2) }];
      return drafted(args, faults, 2 + (4 * lostCount * timeOutPs(args)) / psPerSecond);
    }
    case 'rnr': {
      const rnrTimerCode = random.chance(0.2) ? 0 : random.below(32);
      const args = { ...usual, opcode: IBV_WR_SEND, rnrTimerCode, rnrRetryCount: random.below(7) };
      return drafted(args, [], 10);
    }
    case 'mtu': {
      const mtuCodes = [1 + random.below(5), 1 + random.below(5)] as const;
      const edge = mtuBytes(mtuCodes[random.below(2)]!) * (1 + random.below(2));
      const lengthBytes = Math.max(
        1,
        random.chance(0.6) ? edge - 1 + random.below(3) : 1 + random.below(2 * edge),
      );
      return drafted({ ...usual, timeoutCode: 8, mtuCodes, lengthBytes });
    }
  }
}

const drafted = (args: Args, faults: readonly FaultEntry[] = [], sleepsSeconds = 0): SceneDraft => ({
  args: { ...args } as unknown as JsonValue,
  hasDrawnHardware: false,
  faults,
  climate: 'flawed',
  ...(sleepsSeconds > 2 ? { sleepsSeconds: Math.ceil(sleepsSeconds) } : {}),
});

/** One request without faults, except where a receive is to be missing; then the measured one. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { about, opcode, lengthBytes, mtuCodes } = args;
  const side = await connectWithPeer(program, {
    areaBytes: 2 * lengthBytes,
    attributes: { ...args, pathMtu: mtuCodes[0] as PortAttr['activeMtu'] },
    firstPsn: args.firstPsn,
  });
  program.memory.write(side.area.address, patternOf(program.node, 2 * lengthBytes));
  await barrier(program, 'filled');
  const request = (id: number) => requestOf(side, id, opcode, { offset: id * lengthBytes, lengthBytes });
  const ended: Ended[] = [];
  const patience = { napPs: psPerUs, patiencePs: 100 * psPerMs };
  if (about === 'timeOut') {
    post(side.qps[0]!, request(0));
    ended.push(...(await watchCompletions(side, 1, patience)));
  }
  const postedPs = nowPs(program);
  post(side.qps[0]!, request(1));
  const waitPs = longestPs(args);
  ended.push(
    ...(await watchCompletions(side, 1, { napPs: psPerUs + Math.ceil(waitPs / 200), patiencePs: waitPs })),
  );
  await barrier(program, 'over');
  await program.exchange.take('looked');
  const came = program.memory.read(side.area.address + lengthBytes, lengthBytes);
  const isRight = firstDifference(came, patternOf(1, 2 * lengthBytes).subarray(lengthBytes)) === -1;
  await leave(side);
  return { postedPs, ended, isRight } as unknown as JsonValue;
}

/** Owns what is requested, and posts receives except where they are to be missing. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { about, lengthBytes, mtuCodes } = args;
  const side = await connectWithPeer(program, {
    areaBytes: 2 * lengthBytes,
    cap: { maxRecvWr: 2 },
    attributes: { ...args, pathMtu: mtuCodes[1] as PortAttr['activeMtu'] },
    firstPsn: args.firstPsn,
    beforeReady: ({ qps, area: { address, region } }) => {
      const from = about === 'timeOut' ? 0 : 1;
      for (let id = from; id < 2 && about !== 'rnr'; id++) {
        const sgList = [{ addr: address + id * lengthBytes, length: lengthBytes, lkey: region.lkey }];
        postRecv(qps[0]!, { wrId: id, sgList, numSge: 1 }, { wr: null, index: 0 });
      }
    },
  });
  program.memory.write(side.area.address, patternOf(program.node, 2 * lengthBytes));
  await barrier(program, 'filled');
  await barrier(program, 'over');
  // What was acknowledged may still be on its way to memory.
  await program.cpu.sleep(psPerMs);
  const came = program.memory.read(side.area.address + lengthBytes, lengthBytes);
  const isRight = firstDifference(came, patternOf(0, 2 * lengthBytes).subarray(lengthBytes)) === -1;
  await program.exchange.put('looked', true);
  await leave(side);
  return { isRight };
}

/** Time by which the request has ended, or is watched. */
function longestPs(args: Args): number {
  if (args.about === 'rnr') return 2 * args.rnrRetryCount * rnrDelayPs(args) + 10 * psPerMs;
  if (args.about === 'timeOut' && args.timeoutCode === 0) return foreverPs;
  const timeOuts = args.about === 'mtu' ? args.retryCount + 1 : args.lostCount;
  return 5 * timeOuts * timeOutPs(args) + 10 * psPerMs;
}

function judge({ args: given, results }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const { about, opcode, lengthBytes, timeoutCode, rnrRetryCount, mtuCodes, lostCount } = args;
  const [{ postedPs, ended, isRight: hasRead }, { isRight: isWritten }] = results as unknown as [Told, Told];
  const one = ended[about === 'timeOut' ? 1 : 0];
  const tookPs = one === undefined ? 0 : one.atPs - postedPs;
  const found: string[] = [];
  const within = (leastPs: number, mostPs: number): void => {
    if (tookPs < leastPs || tookPs > mostPs + mostPs / 20 + marginPs)
      found.push(`the request took ${tookPs} ps, and has to take ${leastPs} to ${mostPs}`);
  };
  const isStatus = (status: number): void => {
    if (one?.status !== status)
      found.push(`the request ended in status ${one?.status}, and not in ${status}`);
  };
  if (about === 'timeOut' && ended[0]?.status !== IBV_WC_SUCCESS)
    found.push(`the request before ended in status ${ended[0]?.status}`);
  if (about === 'timeOut' && timeoutCode === 0) {
    // Nothing is ever retransmitted, and nothing is missing.
    if (one !== undefined)
      found.push(`a request whose packet or answer is lost ended in status ${one.status}`);
    return found;
  }
  if (about === 'rnr') {
    isStatus(IBV_WC_RNR_RETRY_EXC_ERR);
    within(rnrRetryCount * rnrDelayPs(args), 2 * rnrRetryCount * rnrDelayPs(args));
    return found;
  }
  // No time-out is longer than four times what its code says.
  if (about === 'timeOut') within(lostCount * timeOutPs(args), 4 * lostCount * timeOutPs(args));
  const [ours, theirs] = mtuCodes;
  if (ours === theirs || lengthBytes <= mtuBytes(Math.min(ours, theirs))) {
    isStatus(IBV_WC_SUCCESS);
    const isRight = opcode === IBV_WR_RDMA_READ ? hasRead : isWritten;
    if (!isRight) found.push('other bytes have come');
  } else if (opcode === IBV_WR_RDMA_READ) {
    // Responses of other lengths than expected: which error that is depends on what is looked at first.
    const { status } = one ?? { status: IBV_WC_SUCCESS };
    if (status === IBV_WC_SUCCESS || status === IBV_WC_WR_FLUSH_ERR)
      found.push(`a READ over unlike path MTUs ended in status ${one?.status}`);
  } else isStatus(IBV_WC_REM_INV_REQ_ERR);
  return found;
}

export const extremeAttributes: Scene = {
  name: 'extreme-attributes',
  about: 'time-outs of hours or none, all RNR delays, unlike path MTUs, PSNs at the wrap',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge,
};
