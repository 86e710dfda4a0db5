/**
 * A device is reset in mid-traffic in both directions: its firmware died, it left its slot for a while, or a command of the driver failed. Its
 * programs get IBV_EVENT_DEVICE_FATAL; their outstanding requests succeed once or vanish; the device uses no earlier memory once it can be opened
 * again, even if a program still rings its doorbells. The peer's requests end in RETRY_EXC_ERR after their time-outs (IBTA 9.7.6.1.3). Then both
 * start again.
 *
 *     traffic ─► fatal event, reset, opened again ─► the other side's retries end ─► again, or work and leave
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { Draft, Draws, Ended, FaultEntry, Played, Side, Stage } from './language/index.ts';
import {
  codeOf,
  connect,
  filled,
  isWell,
  patternOf,
  READ,
  scene,
  statusesOf,
  timeOutPsOf,
  times,
  WRITE,
} from './language/index.ts';

interface Args {
  readonly how: 'closing' | 'catastrophic' | 'gone';
  /** Node whose device dies. */
  readonly victim: number;
  /** Number of resets of the device. */
  readonly deaths: number;
  readonly qpCount: number;
  /** Requests under way of each QP. */
  readonly window: number;
  readonly lengthBytes: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  /** Time from the connection until the event that kills the device. */
  readonly lifeNs: number;
  /**
   * Whether it closes the dead device before opening it again; otherwise it closes it afterwards, and rings its
   * doorbells once more.
   */
  readonly closesFirst: boolean;
}

function draw(random: Draws): Draft<Args> {
  const how = random.oneOf(['closing', 'catastrophic', 'gone'] as const);
  const deaths = random.chance(0.7) ? 1 : 2 + random.below(3);
  const hasDrawnHardware = random.chance(0.25);
  const args: Args = {
    how,
    victim: random.below(2),
    deaths,
    qpCount: 1 + random.below(3),
    window: 1 + random.below(6),
    lengthBytes: 1 + random.below(random.chance(0.5) ? 200 : 20_000),
    timeoutCode: (hasDrawnHardware ? 10 : 7) + random.below(2),
    retryCount: random.below(3),
    lifeNs: random.below(random.chance(0.6) ? 15_000 : 60_000),
    closesFirst: random.chance(0.5),
  };
  const node = args.victim;
  const faults = times(how === 'closing' ? 1 : deaths, (death): FaultEntry => {
    if (how === 'closing')
      return { command: 'HW2SW_MPT', nth: deaths === 1 ? 1 : `1-${deaths}`, status: 'INTERNAL_ERR', node };
    const when = { after: 'RTR2RTS_QP', nth: args.qpCount * (1 + death), delay: `${args.lifeNs}ns`, node };
    if (how === 'catastrophic') return { catastrophic: 1 + random.below(0xffff), ...when };
    return { device: 'gone', ...when, for: `${1 + random.below(4000)}us` };
  });
  const set = { 'driver.healthIntervalUs': 100 + random.below(800) };
  return { args, set, hasDrawnHardware, faults, climate: 'flawed' };
}

const taken = 0x77;
const eventPatiencePs = 2000 * psPerMs;
/** Bytes of each part of an area: written by the other side, sent and read, read by own READs. */
const partBytes = ({ qpCount, window, lengthBytes }: Args): number => qpCount * window * lengthBytes;
const sourceOf = (args: Args, node: number): Uint8Array<ArrayBuffer> => patternOf(node, partBytes(args));
const isReadAt = (qp: number, number: number): boolean => (qp + number) % 2 === 1;

/** Connects both sides, and fills the areas. */
async function open(stage: Stage<Args>): Promise<Side> {
  const { args, node } = stage;
  const { qpCount, window, timeoutCode, retryCount } = args;
  const side = await connect(stage, {
    ...{ areaBytes: 3 * partBytes(args), qpCount, hasChannel: true, mayDieWhenReady: true },
    ...{ cap: { maxSendWr: window }, attributes: { timeoutCode, retryCount } },
  });
  side.fill(new Uint8Array(side.area.lengthBytes));
  side.fill(sourceOf(args, node), partBytes(args));
  await stage.meet('filled');
  return side;
}

/** Posts a request by its number: WRITEs and READs of the same bytes again and again. */
function post(side: Side, args: Args, qp: number, number: number): void {
  const { window, lengthBytes, qpCount } = args;
  const place = (qp * window + (number % window)) * lengthBytes;
  const part = partBytes(args);
  const isRead = isReadAt(qp, number);
  const [offset, remoteOffset] = isRead ? [2 * part + place, part + place] : [part + place, place];
  side.post(qp + number * qpCount, isRead ? READ : WRITE, { qp, offset, remoteOffset, lengthBytes });
}

/** Received bytes are the peer's, or 0. */
function judgeContents({ args, node }: Stage<Args>, side: Side): void {
  const source = sourceOf(args, 1 - node);
  const part = partBytes(args);
  for (const number of [0, 2]) {
    const seen = side.bytes(number * part, part);
    const at = seen.findIndex((byte, place) => byte !== 0 && byte !== source[place]);
    if (at >= 0) side.stage.accuse(`byte ${at} of part ${number} is ${seen[at]}: no program sent that`);
  }
}

/** One generation of the device, as a program saw it until it failed. */
interface Life {
  /** Instants of posts, and completions, by QP. */
  readonly posted: readonly (readonly number[])[];
  readonly ended: readonly (readonly Ended[])[];
  /** Instant of the event's arrival; 0 at the other side. */
  readonly fatalPs: number;
}

/** Keeps windows full until something fails or the round is over; then polls what still arrives. */
async function talk(side: Side, args: Args, isOver: () => Promise<boolean>): Promise<Omit<Life, 'fatalPs'>> {
  const { qpCount, window, timeoutCode } = args;
  const posted: number[][] = side.qps.map(() => []);
  const ended: Ended[][] = side.qps.map(() => []);
  const sort = (some: readonly Ended[]): void => {
    for (const one of some) ended[one.id % qpCount]!.push(one);
  };
  const hasFailed = (qp: number): boolean => !ended[qp]!.every(isWell);
  // A program that waits for nothing but time-outs polls seldom.
  const longestNapPs = timeOutPsOf(timeoutCode) / 40;
  let napPs = 2 * psPerUs;
  while (!(await isOver()) && !side.qps.every((_, qp) => hasFailed(qp))) {
    for (const qp of side.qps.keys())
      while (!hasFailed(qp) && posted[qp]!.length - ended[qp]!.length < window) {
        posted[qp]!.push(side.stage.nowPs);
        post(side, args, qp, posted[qp]!.length - 1);
      }
    const some = await side.watch(1, { napPs, patiencePs: 4 * napPs });
    napPs = some.length > 0 ? 2 * psPerUs : Math.min(2 * napPs, longestNapPs);
    sort(some);
  }
  const left = posted.flat().length - ended.flat().length;
  sort(await side.watch(left, { napPs: 100 * psPerUs, patiencePs: 2 * psPerMs }));
  return { posted, ended };
}

/** The side whose device dies: from the traffic until it can be opened again. */
async function die(stage: Stage<Args>): Promise<Life> {
  const { args } = stage;
  const [slot] = ibv.getDeviceList(stage.context.verbs);
  const side = await open(stage);
  const { device, cq, area, qps } = side;
  const spare = args.how === 'closing' ? await device.buffer(4096) : undefined;
  const beganPs = stage.nowPs;
  let isSpareHere = spare !== undefined;
  let fatalPs = 0;
  const seen = await talk(side, args, async () => {
    if (isSpareHere && stage.nowPs - beganPs >= args.lifeNs * psPerNs) {
      isSpareHere = false;
      const code = await codeOf(device.deregister(spare!.region));
      if (code !== 'ok') stage.accuse(`deregistering, which kills the device, came to ${code}`);
    }
    if (fatalPs > 0) return true;
    const event = await ibv.getAsyncEvent(device.context, 0);
    const isLate = stage.nowPs - beganPs > eventPatiencePs;
    if (event?.eventType === ibv.IBV_EVENT_DEVICE_FATAL || isLate) fatalPs = stage.nowPs;
    if (event === undefined && isLate) stage.accuse('no fatal event came');
    return fatalPs > 0;
  });
  if ((await ibv.getCqEvent(cq.channel!, psPerMs)) === undefined)
    stage.accuse('a thread that waits for completions is not woken');
  ibv.ackCqEvents(cq, cq.eventsUnacked);
  for (const call of [
    () => ibv.queryPort(device.context, 1),
    () => ibv.regMr(device.pd, area.address, 1, 0),
  ]) {
    const code = await codeOf(call());
    if (code !== 'EIO') stage.accuse(`a call of a context whose device died came to ${code}`);
  }
  judgeContents(stage, side);
  if (args.closesFirst) await device.close();
  await reopen(stage, slot!);
  // No other owner has this memory from here on.
  side.fill(filled(area.lengthBytes, taken));
  for (const qp of args.closesFirst ? [] : qps.keys()) post(side, args, qp, seen.posted[qp]!.length);
  await stage.meet('missed');
  const late = args.closesFirst ? [] : await side.completions(1, psPerMs);
  if (late.length > 0)
    stage.accuse(`a QP whose device died completed request ${late[0]!.id} after the reset`);
  side.expect('memory of before the reset', 0, filled(area.lengthBytes, taken));
  await device.close();
  return { ...seen, fatalPs };
}

/** Waits until the device can be opened again. */
async function reopen(stage: Stage<Args>, device: ibv.IbvDevice): Promise<void> {
  for (let waited = 0; waited < 4000; waited++) {
    const code = await codeOf(ibv.openDevice(device).then(ibv.closeDevice));
    if (code === 'ok') return;
    if (code !== 'ENODEV') stage.accuse(`opening the device came to ${code}`);
    await stage.cpu.sleep(psPerMs / 2);
  }
  stage.accuse('the device cannot be opened for two seconds');
}

/** The other side: sends until no response arrives any more. */
async function outlive(stage: Stage<Args>): Promise<Life> {
  const side = await open(stage);
  const seen = await talk(side, stage.args, async () => false);
  judgeContents(stage, side);
  await stage.meet('missed');
  await side.device.close();
  return { ...seen, fatalPs: 0 };
}

/** Both make each request once, without a fault. */
async function workAgain(stage: Stage<Args>): Promise<void> {
  const { args, node } = stage;
  const { window, lengthBytes } = args;
  const side = await open(stage);
  const count = side.qps.length * window;
  for (const qp of side.qps.keys())
    for (let number = 0; number < window; number++) post(side, args, qp, number);
  await side.expectWell(count);
  await stage.meet('worked');
  // An acknowledged WRITE may still be in flight to memory.
  await stage.sleepMs(1);
  const part = partBytes(args);
  const due = new Uint8Array(3 * part);
  due.set(sourceOf(args, node), part);
  for (let at = 0; at < count; at++) {
    const isRead = isReadAt(Math.floor(at / window), at % window);
    const bytes = sourceOf(args, 1 - node).subarray(at * lengthBytes, (at + 1) * lengthBytes);
    due.set(bytes, (isRead ? 2 * part : 0) + at * lengthBytes);
  }
  side.expect('after the reset', 0, due);
}

/** Both sides: the device of one is reset as often as planned, the other survives; then both work. */
async function player(stage: Stage<Args>): Promise<Life[]> {
  const lives: Life[] = [];
  for (let death = 0; death < stage.args.deaths; death++)
    lives.push(await (stage.node === stage.args.victim ? die : outlive)(stage));
  await workAgain(stage);
  return lives;
}

type All = Played<Args, readonly (readonly Life[])[]>;

function judge({ args, told, set }: All): string[] {
  const { victim, qpCount } = args;
  return told.flatMap((lives, node) =>
    lives.flatMap(({ posted, ended }, death) =>
      ended.flatMap((own, qp) => {
        const ids = own.map(({ id }) => id);
        const due = own.map((_, number) => qp + number * qpCount);
        const found = `${ids}` === `${due}` ? [] : [`requests ended in the order ${ids.slice(0, 20)}`];
        if (node !== victim)
          found.push(...wrongEndOf(args, set, posted[qp]!, own, told[victim]![death]!.fatalPs));
        else if (!own.every(isWell)) found.push(`requests of what died ended in ${statusesOf(own)}`);
        return found.map((what) => `node ${node}, life ${death}, QP ${qp}: ${what}`);
      }),
    ),
  );
}

/** Errors in the ends of a QP's requests whose peer died before `fatalPs`. */
function wrongEndOf(
  args: Args,
  set: All['set'],
  posted: readonly number[],
  ended: readonly Ended[],
  fatalPs: number,
): string[] {
  const failed = ended.findIndex((one) => !isWell(one));
  if (ended.length !== posted.length || failed < 0)
    return [`${ended.length} of ${posted.length} requests ended, the first in error is ${failed}`];
  const { status, atPs } = ended[failed]!;
  const found = status === 'RETRY_EXC_ERR' ? [] : [`request ${failed} ended in ${status}`];
  const others = statusesOf(ended.slice(failed + 1)).filter((one) => one !== 'WR_FLUSH_ERR');
  if (others.length > 0) found.push(`requests after it ended in ${others}`);
  const timeOutPs = timeOutPsOf(args.timeoutCode);
  const leastPs = (args.retryCount + 1) * timeOutPs;
  const tookPs = atPs - posted[failed]!;
  if (tookPs < leastPs)
    found.push(`gave up ${tookPs} ps after the request was posted, its time-outs take ${leastPs}`);
  // No timeout is longer than four times the value of its code (9.7.6.1.3); on other hardware the first one starts
  // later.
  const isDefault = !Object.keys(set).some((path) => path.startsWith('hca.') || path.startsWith('pcie.'));
  const mostPs = 4 * leastPs + timeOutPs + (isDefault ? 200 : 5000) * psPerUs;
  const sincePs = atPs - Math.max(posted[failed]!, fatalPs);
  if (sincePs > mostPs) found.push(`gave up ${sincePs} ps after the other side died, ${mostPs} at most`);
  return found;
}

export const resetInTraffic = scene({
  about: 'a device is reset in the middle of traffic, or leaves its slot, and its programs start again',
  cable: 'infiniband',
  // A device that died is reset with its objects, and programs ring doorbells of QPs that the reset removed.
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  draw,
  programs: [player, player],
  judge,
});
