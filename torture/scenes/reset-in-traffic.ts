/**
 * A device is reset in the middle of traffic in both directions: its firmware died, it left its slot for a while, or the driver
 * could not take something back from it. Its programs get IBV_EVENT_DEVICE_FATAL; what they had outstanding ends silently or not
 * at all, never twice; nothing of it is used once the device can be opened again, also when a program still rings its doorbells.
 * The other side's requests end in RETRY_EXC_ERR when their time-outs are over (IBTA 9.7.6.1.3). Then both begin anew.
 *
 *     traffic ─► fatal event, reset, opened again ─► the other side's retries end ─► again, or work and leave
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import { barrier, createBuffer } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  closeDevice,
  deregMr,
  getAsyncEvent,
  getCqEvent,
  getDeviceList,
  IBV_EVENT_DEVICE_FATAL,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  openDevice,
  queryPort,
  regMr,
} from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import {
  codeOf,
  completionsOf,
  connectWithPeer,
  type Ended,
  failuresOf,
  leave,
  nowPs,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import { differencesOf, patternOf } from './patterns.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly how: 'closing' | 'catastrophic' | 'gone';
  /** Node whose device dies. */
  readonly victim: number;
  /** Times that it dies. */
  readonly deaths: number;
  readonly qpCount: number;
  /** Requests under way of each QP. */
  readonly window: number;
  readonly lengthBytes: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  /** From the connection until something that kills the device. */
  readonly lifeNs: number;
  /** Closes what died before it opens the device again; else afterwards, having rung its doorbells once more. */
  readonly closesFirst: boolean;
}

/** What a program reports of one generation of the device, which failed. */
interface Life {
  /** Places of requests in their order, by QP and post. */
  readonly posted: readonly (readonly number[])[];
  readonly ended: readonly (readonly Ended[])[];
  /** When the event had come; 0 at the other side. */
  readonly fatalPs: number;
}

interface Told {
  readonly lives: readonly Life[];
  readonly wrong: readonly string[];
}

function draw(random: Random): SceneDraft {
  const how = (['closing', 'catastrophic', 'gone'] as const)[random.below(3)]!;
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
  const { victim, lifeNs, qpCount } = args;
  const node = victim;
  const faults = Array.from({ length: how === 'closing' ? 1 : deaths }, (_, death): FaultEntry => {
    if (how === 'closing')
      return { command: 'HW2SW_MPT', nth: deaths === 1 ? 1 : `1-${deaths}`, status: 'INTERNAL_ERR', node };
    const when = { after: 'RTR2RTS_QP', nth: qpCount * (1 + death), delay: `${lifeNs}ns`, node };
    if (how === 'catastrophic') return { catastrophic: 1 + random.below(0xffff), ...when };
    return { device: 'gone', ...when, for: `${1 + random.below(4000)}us` };
  });
  const set = { 'driver.healthIntervalUs': 100 + random.below(800) };
  return { args: { ...args }, set, hasDrawnHardware, faults, climate: 'flawed' };
}

/** Parts of an area: what the other side writes, what is sent and read, what READs bring. */
const partBytes = ({ qpCount, window, lengthBytes }: Args): number => qpCount * window * lengthBytes;
const untouched = 0;
const taken = 0x77;

const connectSides = (program: ProgramContext, args: Args): Promise<Side> =>
  connectWithPeer(program, {
    areaBytes: 3 * partBytes(args),
    qpCount: args.qpCount,
    hasChannel: true,
    mayDieWhenReady: true,
    cap: { maxSendWr: args.window },
    attributes: { timeoutCode: args.timeoutCode, retryCount: args.retryCount },
  });

const sourceOf = (args: Args, node: number): Uint8Array<ArrayBuffer> => patternOf(node, partBytes(args));

function fill({ memory, node }: ProgramContext, { area }: Side, args: Args): void {
  memory.write(area.address, new Uint8Array(area.lengthBytes).fill(untouched));
  memory.write(area.address + partBytes(args), sourceOf(args, node));
}

/** A request by its number: WRITEs and READs of the same bytes again and again. */
function requestAt(side: Side, args: Args, qp: number, number: number) {
  const { window, lengthBytes } = args;
  const place = (qp * window + (number % window)) * lengthBytes;
  const part = partBytes(args);
  const isRead = (qp + number) % 2 === 1;
  const id = qp + number * args.qpCount;
  return isRead
    ? requestOf(side, id, IBV_WR_RDMA_READ, {
        offset: 2 * part + place,
        remoteOffset: part + place,
        lengthBytes,
      })
    : requestOf(side, id, IBV_WR_RDMA_WRITE, { offset: part + place, remoteOffset: place, lengthBytes });
}

/** What has come is of the other side, or nothing has. */
function contentsWrong({ memory, node }: ProgramContext, { area }: Side, args: Args): string[] {
  const source = sourceOf(args, 1 - node);
  const part = partBytes(args);
  return [0, 2].flatMap((number) => {
    const seen = memory.read(area.address + number * part, part);
    const at = seen.findIndex((byte, index) => byte !== untouched && byte !== source[index]);
    return at < 0 ? [] : [`byte ${at} of part ${number} is ${seen[at]}: no program sent that`];
  });
}

/** Keeps windows full until something fails or the round is over; then takes what still arrives. */
async function talk(
  program: ProgramContext,
  side: Side,
  args: Args,
  isOver: () => Promise<boolean>,
): Promise<Omit<Life, 'fatalPs'>> {
  const { qpCount, window } = args;
  const posted: number[][] = side.qps.map(() => []);
  const ended: Ended[][] = side.qps.map(() => []);
  const sort = (some: readonly Ended[]): void => {
    for (const one of some) ended[one.id % qpCount]!.push(one);
  };
  const hasFailed = (qp: number): boolean => ended[qp]!.some(({ status }) => status !== IBV_WC_SUCCESS);
  // Who waits for nothing but time-outs looks seldom.
  const longestNapPs = timeOutPs(args) / 40;
  let napPs = 2 * psPerUs;
  while (!(await isOver()) && !side.qps.every((_, qp) => hasFailed(qp))) {
    for (const [at, qp] of side.qps.entries())
      while (!hasFailed(at) && posted[at]!.length - ended[at]!.length < window) {
        posted[at]!.push(nowPs(program));
        post(qp, requestAt(side, args, at, posted[at]!.length - 1));
      }
    const some = await watchCompletions(side, 1, { napPs, patiencePs: 4 * napPs });
    napPs = some.length > 0 ? 2 * psPerUs : Math.min(2 * napPs, longestNapPs);
    sort(some);
  }
  const left = posted.flat().length - ended.flat().length;
  sort(await watchCompletions(side, left, { napPs: 100 * psPerUs, patiencePs: 2 * psPerMs }));
  return { posted, ended };
}

const timeOutPs = ({ timeoutCode }: Args): number => 4096 * psPerNs * 2 ** timeoutCode;

/** The side whose device dies: from the traffic until it can be opened again. */
async function die(program: ProgramContext, args: Args, wrong: string[]): Promise<Life> {
  const { cpu, memory, verbs } = program;
  const device = getDeviceList(verbs)[0]!;
  const { how, lifeNs, closesFirst } = args;
  const side = await connectSides(program, args);
  const { endpoint, cq, area, qps } = side;
  const { context } = endpoint;
  const spare = how === 'closing' ? await createBuffer(endpoint, 4096) : undefined;
  fill(program, side, args);
  await barrier(program, 'filled');
  const beganPs = nowPs(program);
  let spareIsHere = spare !== undefined;
  let fatalPs = 0;
  const isOver = async (): Promise<boolean> => {
    if (spareIsHere && nowPs(program) - beganPs >= lifeNs * psPerNs) {
      spareIsHere = false;
      const code = await codeOf(deregMr(spare!.region));
      if (code !== 'ok') wrong.push(`deregistering, which kills the device, came to ${code}`);
    }
    if (fatalPs > 0) return true;
    const event = await getAsyncEvent(context, 0);
    if (event?.eventType === IBV_EVENT_DEVICE_FATAL) fatalPs = nowPs(program);
    else if (nowPs(program) - beganPs > eventPatiencePs) {
      wrong.push('no fatal event came');
      fatalPs = nowPs(program);
    }
    return fatalPs > 0;
  };
  const seen = await talk(program, side, args, isOver);
  if ((await getCqEvent(cq.channel!, psPerMs)) === undefined)
    wrong.push('a thread that waits for completions is not woken');
  ackCqEvents(cq, cq.eventsUnacked);
  for (const [name, call] of [
    ['ibv_query_port', () => queryPort(context, 1)],
    ['ibv_reg_mr', () => regMr(endpoint.pd, area.address, 1, 0)],
  ] as const) {
    const code = await codeOf(call());
    if (code !== 'EIO') wrong.push(`${name} of a context whose device died came to ${code}`);
  }
  wrong.push(...contentsWrong(program, side, args));
  if (closesFirst) await leave(side);
  for (let waited = 0; ; waited++) {
    const code = await codeOf(openDevice(device).then(closeDevice));
    if (code === 'ok') break;
    if (code !== 'ENODEV') wrong.push(`opening the device came to ${code}`);
    if (waited === 4000) {
      wrong.push('the device cannot be opened for two seconds');
      break;
    }
    await cpu.sleep(psPerMs / 2);
  }
  // No other has this memory from here on.
  memory.write(area.address, new Uint8Array(area.lengthBytes).fill(taken));
  if (!closesFirst)
    for (const [at, qp] of qps.entries()) post(qp, requestAt(side, args, at, seen.posted[at]!.length));
  await barrier(program, 'missed');
  const late = closesFirst ? [] : await completionsOf(side, 1, psPerMs);
  if (late.length > 0) wrong.push(`a QP whose device died completed request ${late[0]!.id} after the reset`);
  wrong.push(
    ...differencesOf(
      'memory of before the reset',
      memory.read(area.address, area.lengthBytes),
      new Uint8Array(area.lengthBytes).fill(taken),
    ),
  );
  if (!closesFirst) await leave(side);
  return { ...seen, fatalPs };
}

const eventPatiencePs = 2000 * psPerMs;

/** The other side: sends until no answer comes any more. */
async function outlive(program: ProgramContext, args: Args, wrong: string[]): Promise<Life> {
  const side = await connectSides(program, args);
  fill(program, side, args);
  await barrier(program, 'filled');
  const seen = await talk(program, side, args, async () => false);
  wrong.push(...contentsWrong(program, side, args));
  await barrier(program, 'missed');
  await leave(side);
  return { ...seen, fatalPs: 0 };
}

/** Both ask for everything once, in peace. */
async function workAgain(program: ProgramContext, args: Args): Promise<string[]> {
  const side = await connectSides(program, args);
  const part = partBytes(args);
  fill(program, side, args);
  await barrier(program, 'filled');
  const count = side.qps.length * args.window;
  for (const [at, qp] of side.qps.entries())
    for (let number = 0; number < args.window; number++) post(qp, requestAt(side, args, at, number));
  const ended = await completionsOf(side, count);
  const wrong = failuresOf(ended).map((what) => `after the reset ${what}`);
  if (ended.length !== count) wrong.push(`after the reset ${ended.length} of ${count} requests ended`);
  await barrier(program, 'worked');
  // What was acknowledged may still be on its way to memory.
  await program.cpu.sleep(psPerMs);
  const expected = new Uint8Array(3 * part).fill(untouched);
  expected.set(sourceOf(args, program.node), part);
  for (let at = 0; at < count; at++) {
    const qp = Math.floor(at / args.window);
    const isRead = (qp + (at % args.window)) % 2 === 1;
    const from = at * args.lengthBytes;
    const bytes = sourceOf(args, 1 - program.node).subarray(from, from + args.lengthBytes);
    expected.set(bytes, (isRead ? 2 * part : 0) + from);
  }
  const seen = program.memory.read(side.area.address, side.area.lengthBytes);
  wrong.push(...differencesOf('after the reset', seen, expected));
  await leave(side);
  return wrong;
}

/** Both: one dies as often as it has to, the other outlives it; then both work. */
export async function player(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const wrong: string[] = [];
  const lives: Life[] = [];
  for (let death = 0; death < args.deaths; death++)
    lives.push(await (program.node === args.victim ? die : outlive)(program, args, wrong));
  wrong.push(...(await workAgain(program, args)));
  return { lives, wrong } as unknown as JsonValue;
}

function judge({ args: given, results, set }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const told = results as unknown as readonly Told[];
  const found = told.flatMap(({ wrong }, node) => wrong.slice(0, 4).map((what) => `node ${node}: ${what}`));
  for (const [node, { lives }] of told.entries())
    for (const [death, life] of lives.entries())
      for (const [qp, ended] of life.ended.entries()) {
        const where = `node ${node}, life ${death}, QP ${qp}`;
        const posted = life.posted[qp]!;
        const due = ended.map((_, number) => qp + number * args.qpCount);
        const ids = ended.map(({ id }) => id);
        if (`${ids}` !== `${due}`) found.push(`${where}: requests ended in the order ${ids.slice(0, 20)}`);
        const statuses = ended.map(({ status }) => status);
        const failed = statuses.findIndex((status) => status !== IBV_WC_SUCCESS);
        if (node === args.victim) {
          if (failed >= 0)
            found.push(`${where}: request ${failed} of what died ended in status ${statuses[failed]}`);
          continue;
        }
        const last = told[args.victim]!.lives[death]!.fatalPs;
        found.push(...missedWrong(args, set, posted, ended, failed, last).map((what) => `${where}: ${what}`));
      }
  return found;
}

/** What is wrong with how a QP ended whose other end died before `fatalPs`. */
function missedWrong(
  args: Args,
  set: ScenePlayed['set'],
  posted: readonly number[],
  ended: readonly Ended[],
  failed: number,
  fatalPs: number,
): string[] {
  if (ended.length !== posted.length || failed < 0)
    return [`${ended.length} of ${posted.length} requests ended, the first in error is ${failed}`];
  const { status, atPs } = ended[failed]!;
  const found = status === IBV_WC_RETRY_EXC_ERR ? [] : [`request ${failed} ended in status ${status}`];
  const others = ended.slice(failed + 1).filter((one) => one.status !== IBV_WC_WR_FLUSH_ERR);
  if (others.length > 0)
    found.push(`request ${others[0]!.id} behind it ended in status ${others[0]!.status}`);
  const leastPs = (args.retryCount + 1) * timeOutPs(args);
  if (atPs - posted[failed]! < leastPs)
    found.push(
      `gave up ${atPs - posted[failed]!} ps after the request was posted, its time-outs take ${leastPs}`,
    );
  // No time-out is longer than four times what its code says (9.7.6.1.3); on other hardware the way to the first one is longer.
  const isDefault = !Object.keys(set).some((path) => path.startsWith('hca.') || path.startsWith('pcie.'));
  const mostPs = 4 * leastPs + timeOutPs(args) + (isDefault ? 200 : 5000) * psPerUs;
  const fromPs = Math.max(posted[failed]!, fatalPs);
  if (atPs - fromPs > mostPs)
    found.push(`gave up ${atPs - fromPs} ps after the other side died, ${mostPs} at most`);
  return found;
}

export const resetInTraffic: Scene = {
  name: 'reset-in-traffic',
  about: 'a device is reset in the middle of traffic, or leaves its slot, and its programs begin anew',
  module: import.meta.url,
  cable: 'infiniband',
  programs: [
    { node: 0, exportName: 'player' },
    { node: 1, exportName: 'player' },
  ],
  draw,
  // What is reset because it died has not been taken down before, and doorbells are rung of QPs that were.
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  judge,
};
