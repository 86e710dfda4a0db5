/**
 * Connections with attributes at the ends of their ranges: ACK time-out codes up to 31 (nearly three hours) and 0 (none), all RNR delays, unequal
 * path MTUs, first PSNs at the wrap. The standard decides the cost of a lost packet and of a missing receive, and the messages that unequal
 * ends can exchange (IBTA 9.7.6.1.3, table 45, 9.7.4.1.6).
 */
import { psPerMs, psPerSecond, psPerUs } from '../../base/index.ts';
import type { Draft, Draws, Ended, FaultEntry, Played, Stage } from './language/index.ts';
import {
  connect,
  isSame,
  mtuOf,
  patternOf,
  READ,
  SEND,
  scene,
  timeOutPsOf,
  topic,
  WRITE,
} from './language/index.ts';

interface Args {
  readonly about: 'timeOut' | 'rnr' | 'mtu';
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly rnrTimerCode: number;
  /** MTU codes of the requester, and of the responder. */
  readonly mtuCodes: readonly [number, number];
  readonly firstPsn: number;
  /** Attempts of the request that are lost. */
  readonly lostCount: number;
}

/** RNR delays by code, in µs (table 45). */
const rnrDelaysUs = [
  655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680,
  10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
] as const;
const rnrDelayPs = ({ rnrTimerCode }: Args): number => rnrDelaysUs[rnrTimerCode]! * psPerUs;
/** Time for which a request that waits indefinitely is watched. */
const foreverPs = psPerSecond;
/** Time for hardware and program in addition to the reported times. */
const marginPs = 100 * psPerUs;

function draw(random: Draws): Draft<Args> {
  const about = random.oneOf(['timeOut', 'rnr', 'mtu'] as const);
  const psns = [0, 1, 0xff_fffd, 0xff_fffe, 0xff_ffff, 0x7f_ffff, 0x80_0000];
  const retryCount = 1 + random.below(7);
  const usual: Args = {
    about,
    opcode: random.oneOf([WRITE, READ, SEND]),
    lengthBytes: 1 + random.below(256),
    timeoutCode: 14,
    retryCount,
    rnrRetryCount: 7,
    rnrTimerCode: 1,
    mtuCodes: [5, 5],
    firstPsn: random.chance(0.5) ? random.oneOf(psns) : random.below(1 << 24),
    lostCount: 0,
  };
  if (about === 'timeOut') {
    const timeoutCode = random.oneOf([0, 30, 31, 4 + random.below(28), 4 + random.below(28)]);
    const lostCount = timeoutCode === 0 ? 1 : 1 + random.below(Math.min(3, retryCount));
    const packet = random.chance(0.5) ? 'lost' : 'corrupted';
    const faults: FaultEntry[] = [{ packet, nth: `2-${1 + lostCount}`, node: random.below(2) }];
    const sleepsSeconds = 2 + (4 * lostCount * timeOutPsOf(timeoutCode)) / psPerSecond;
    return drafted({ ...usual, timeoutCode, lostCount }, sleepsSeconds, faults);
  }
  if (about === 'rnr') {
    const rnrTimerCode = random.chance(0.2) ? 0 : random.below(32);
    return drafted({ ...usual, opcode: SEND, rnrTimerCode, rnrRetryCount: random.below(7) }, 10);
  }
  const mtuCodes = [1 + random.below(5), 1 + random.below(5)] as const;
  const edge = mtuOf(random.oneOf(mtuCodes)) * (1 + random.below(2));
  const lengthBytes = random.chance(0.6) ? edge - 1 + random.below(3) : 1 + random.below(2 * edge);
  return drafted({ ...usual, timeoutCode: 8, mtuCodes, lengthBytes: Math.max(1, lengthBytes) }, 0);
}

const drafted = (args: Args, sleepsSeconds: number, faults: readonly FaultEntry[] = []): Draft<Args> => ({
  ...{ args, faults, climate: 'flawed' },
  ...(sleepsSeconds > 2 ? { sleepsSeconds: Math.ceil(sleepsSeconds) } : {}),
});

const looked = topic<true>('looked');

interface Told {
  /** Observations of the requester. */
  readonly postedPs: number;
  readonly ended: readonly Ended[];
  /** Whether the bytes of the measured request are here. */
  readonly isRight: boolean;
}

/**
 * The first program posts one request without faults, unless a receive must be missing; then the measured one. The
 * second owns the requested memory.
 */
async function player(stage: Stage<Args>): Promise<Told> {
  const { args, node } = stage;
  const { about, opcode, lengthBytes, mtuCodes, firstPsn } = args;
  const isAsker = node === 0;
  const span = (id: number) => ({ offset: id * lengthBytes, lengthBytes });
  const side = await connect(stage, {
    ...{ areaBytes: 2 * lengthBytes, mtuCode: mtuCodes[isAsker ? 0 : 1], firstPsn, attributes: args },
    cap: isAsker ? {} : { maxRecvWr: 2 },
    beforeReady: (early) => {
      const from = about === 'timeOut' ? 0 : 1;
      for (let id = from; id < 2 && about !== 'rnr' && !isAsker; id++) early.receive(id, span(id));
    },
  });
  side.fill(patternOf(node, 2 * lengthBytes));
  await stage.meet('filled');
  const ended: Ended[] = [];
  if (isAsker && about === 'timeOut') {
    side.post(0, opcode, span(0));
    ended.push(...(await side.watch(1, { napPs: psPerUs, patiencePs: 100 * psPerMs })));
  }
  const postedPs = stage.nowPs;
  if (isAsker) {
    side.post(1, opcode, span(1));
    const waitPs = longestPs(args);
    ended.push(...(await side.watch(1, { napPs: psPerUs + Math.ceil(waitPs / 200), patiencePs: waitPs })));
  }
  await stage.meet('over');
  // An acknowledged WRITE may still be in flight to memory.
  if (isAsker) await stage.take(looked);
  else await stage.sleepMs(1);
  const due = patternOf(1 - node, 2 * lengthBytes).subarray(lengthBytes);
  const isRight = isSame(side.bytes(lengthBytes, lengthBytes), due);
  if (!isAsker) await stage.put(looked, true);
  return { postedPs, ended, isRight };
}

/** Returns the time by which the request has ended, or for which it is watched. */
function longestPs(args: Args): number {
  const { about, timeoutCode, rnrRetryCount, retryCount, lostCount } = args;
  if (about === 'rnr') return 2 * rnrRetryCount * rnrDelayPs(args) + 10 * psPerMs;
  if (about === 'timeOut' && timeoutCode === 0) return foreverPs;
  return 5 * (about === 'mtu' ? retryCount + 1 : lostCount) * timeOutPsOf(timeoutCode) + 10 * psPerMs;
}

function judge({ args, told: [asked, answered] }: Played<Args, readonly [Told, Told]>): string[] {
  const { about, opcode, lengthBytes, timeoutCode, rnrRetryCount, mtuCodes, lostCount } = args;
  const [before, one] = about === 'timeOut' ? asked.ended : [undefined, asked.ended[0]];
  const found: string[] = [];
  const within = (leastPs: number, mostPs: number): void => {
    const tookPs = one === undefined ? 0 : one.atPs - asked.postedPs;
    if (tookPs < leastPs || tookPs > mostPs + mostPs / 20 + marginPs)
      found.push(`the request took ${tookPs} ps, and has to take ${leastPs} to ${mostPs}`);
  };
  const isStatus = (status: string): void => {
    if (one?.status !== status) found.push(`the request ended in ${one?.status}, and not in ${status}`);
  };
  if (about === 'timeOut' && before?.status !== 'SUCCESS')
    found.push(`the request before ended in ${before?.status}`);
  if (about === 'timeOut' && timeoutCode === 0) {
    // Nothing is ever retransmitted, and nothing is missing.
    if (one !== undefined) found.push(`a request whose packet or answer is lost ended in ${one.status}`);
    return found;
  }
  if (about === 'rnr') {
    isStatus('RNR_RETRY_EXC_ERR');
    within(rnrRetryCount * rnrDelayPs(args), 2 * rnrRetryCount * rnrDelayPs(args));
    return found;
  }
  // No timeout is longer than four times the value of its code.
  const timeOutsPs = lostCount * timeOutPsOf(timeoutCode);
  if (about === 'timeOut') within(timeOutsPs, 4 * timeOutsPs);
  const [ours, theirs] = mtuCodes;
  if (ours === theirs || lengthBytes <= mtuOf(Math.min(ours, theirs))) {
    isStatus('SUCCESS');
    if (!(opcode === READ ? asked : answered).isRight) found.push('other bytes have come');
  } else if (opcode !== READ) isStatus('REM_INV_REQ_ERR');
  // Responses of unexpected lengths: the order of the checks determines the error.
  else if (['SUCCESS', 'WR_FLUSH_ERR'].includes(one?.status ?? 'SUCCESS'))
    found.push(`a READ over unlike path MTUs ended in ${one?.status}`);
  return found;
}

export const extremeAttributes = scene({
  about: 'time-outs of hours or none, all RNR delays, unlike path MTUs, PSNs at the wrap',
  cable: 'infiniband',
  draw,
  programs: [player, player],
  judge,
});
