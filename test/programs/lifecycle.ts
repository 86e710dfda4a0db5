/** The life cycle of a driver and of its device: removal and another probe, reset under traffic, and processes that ring foreign doorbells. */
import { uarOffset } from '../../abi/bar-map.ts';
import { sendDoorbell } from '../../abi/doorbells.ts';
import type { Driver } from '../../driver/index.ts';
import { restoreConfiguration, saveConfiguration } from '../../driver/pci.ts';
import { findCapability } from '../../driver/pci-function.ts';
import { resetDevice } from '../../driver/reset.ts';
import type { Host } from '../../host/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createCompChannel,
  createCq,
  getCqEvent,
  getDeviceList,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  type IbvQp,
  openDevice,
  postSend,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { codeOf, statusesOf, take, takeAll, takeWithin } from './outcomes.ts';
import { areEqual, patternOf, readOf, remoteAt, segment, writeOf } from './requests.ts';
import { type Pair, type PairOptions, Side } from './side.ts';

const microsecond = 1e6;
const bufferBytes = 65_536;

/** A host's driver, as its own programs find it. */
const driverOf = ({ verbs }: ProgramContext): Driver => verbs.devices[0] as Driver;

/** The driver's resources, and frames that no process has mapped. */
const takenOn = (program: ProgramContext): Record<string, number> => ({
  ...driverOf(program).resourceCounts(),
  frames: program.host.frames.usedCount - program.host.mm.residentBytes / 4096,
});

/** Resources held now: read before any other action. */
export async function counts(program: ProgramContext): Promise<JsonValue> {
  return takenOn(program);
}

/** Makes the driver probe its device again. */
export async function probe(program: ProgramContext): Promise<JsonValue> {
  const driver = driverOf(program);
  await driver.probe(program.cpu);
  return { name: driver.name, taken: takenOn(program) };
}

/** WRITE there and READ back. */
async function moves(side: Side, pair: Pair, seed: number): Promise<boolean> {
  const pattern = patternOf(seed, 3000);
  side.write(pair.buffer, pattern);
  side.write(pair.buffer, new Uint8Array(3000), 8192);
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 3000)], remoteAt(pair, 0)));
  postSend(pair.qp, readOf([segment(pair.buffer, 8192, 3000)], remoteAt(pair, 0)));
  const statuses = statusesOf(await take(pair.sendCq, 2));
  return statuses.join() === 'SUCCESS,SUCCESS' && areEqual(side.read(pair.buffer, 3000, 8192), pattern);
}

const quick: PairOptions = { bufferBytes, timeoutCode: 4, retryCount: 2, cap: { maxSendWr: 64 } };

/** Long WRITEs: 64 KiB each, 20 µs. */
function postLong(pair: Pair, count: number): void {
  for (let index = 0; index < count; index++)
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, bufferBytes)], remoteAt(pair, 0)));
}

/**
 * Resets the device in mid-traffic (`how`), then removes and probes its driver again; a second life begins, and data
 * move as in the first.
 */
export async function resetter(program: ProgramContext): Promise<JsonValue> {
  const { cpu, args } = program;
  const driver = driverOf(program);
  const side = await Side.open(program);
  const pair = await side.pair('first life', quick);
  const before = await moves(side, pair, 1);
  await side.barrier('traffic');
  postLong(pair, 30);
  await cpu.sleep(100 * microsecond);
  const { platform, config } = driver.device;
  if (args === 'functionLevel') await resetFunction(program);
  else if (args === 'software') await resetDevice(cpu, platform, config);
  const statuses = [...new Set(statusesOf(await takeWithin(pair.sendCq, 30, 1000)))];
  const removal = await driver.remove(cpu).then(
    () => 'ok',
    (error: unknown) => String((error as { code?: string }).code),
  );
  const taken = takenOn(program);
  const afterRemoval = await codeOf(createCq(side.context, 8));
  await driver.probe(cpu);
  await side.barrier('probed');
  const second = await Side.open(program);
  const again = await second.pair('second life', quick);
  const after = await moves(second, again, 2);
  await second.barrier('over');
  return { before, statuses, removal, taken, afterRemoval, after };
}

async function resetFunction(program: ProgramContext): Promise<void> {
  const { cpu } = program;
  const { platform } = driverOf(program).device;
  const saved = await saveConfiguration(cpu, platform);
  const capability = await findCapability(cpu, platform, 0x10);
  // Device control: bit 15 initiates a function-level reset.
  const control = await platform.pci.readConfig32(cpu, capability + 8);
  await platform.pci.writeConfig32(cpu, capability + 8, control | 0x8000);
  await cpu.sleep(1000 * microsecond);
  await restoreConfiguration(cpu, platform, saved);
}

/** The peer: its requests to the reset device exhaust their retries; a new pair works. */
export async function survivor(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('first life', quick);
  await side.barrier('traffic');
  const statuses: string[] = [];
  while (statuses.at(-1) !== 'RETRY_EXC_ERR') {
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 4096)], remoteAt(pair, 0)));
    statuses.push(...statusesOf(await takeWithin(pair.sendCq, 1, 5000)));
  }
  const state = await side.stateOf(pair);
  await side.closePair(pair);
  await side.barrier('probed');
  const again = await side.pair('second life', quick);
  await side.barrier('over');
  return {
    statuses: [...new Set(statuses)],
    state,
    events: await side.events(),
    again: await side.stateOf(again),
  };
}

/** Data for an intruder on the same host, as if it had guessed them. */
interface Target {
  qp: IbvQp | undefined;
  isOver: boolean;
}
const targets = new WeakMap<Host, Target>();
function targetOf(host: Host): Target {
  const target = targets.get(host) ?? { qp: undefined, isOver: false };
  targets.set(host, target);
  return target;
}

/**
 * Work posted through the doorbell page of another context is not done, and a CQ armed through it raises no event, until the
 * own page is used. Meanwhile an intruder in another process rings for this QP.
 */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const { verbs, host } = program;
  const side = await Side.open(program);
  const channel = await createCompChannel(side.context);
  const sendCq = await createCq(side.context, 64, null, channel);
  const pair = await side.pair('owned', { sendCq, bufferBytes });
  const target = targetOf(host);
  target.qp = pair.qp;
  const other = await openDevice(getDeviceList(verbs)[0]!);
  const foreignContext = { ...side.context, info: other.info };
  const foreign: IbvQp = { ...pair.qp, context: foreignContext };
  const write = (wrId: number, inline = 0) =>
    writeOf([segment(pair.buffer, wrId * 8, 8)], remoteAt(pair, wrId * 8), {
      wrId,
      sendFlags: IBV_SEND_SIGNALED | inline,
    });
  side.write(pair.buffer, patternOf(9, 64));
  // The first post uses a doorbell, the second BlueFlame.
  postSend(foreign, write(1));
  postSend(foreign, write(2, IBV_SEND_INLINE));
  const undone = statusesOf(await takeAll(sendCq, 50));
  reqNotifyCq({ ...sendCq, context: foreignContext }, 0);
  postSend(pair.qp, write(3));
  const ids = (await take(sendCq, 3)).map(({ wrId, status }) => `${wrId} ${status}`);
  const isWoken = (await getCqEvent(channel, 50 * microsecond)) !== undefined;
  let areRight = true;
  for (let round = 0; round < 20; round++) areRight &&= await moves(side, pair, round);
  target.isOver = true;
  await side.barrier('owned over');
  return { undone, ids, isWoken, areRight };
}

export async function ownerPeer(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('owned', { bufferBytes });
  await side.barrier('owned over');
  return side.stateOf(pair);
}

/** Rings for the owner's QP, and for QPs that do not exist, from another process. */
export async function intruder(program: ProgramContext): Promise<JsonValue> {
  const { cpu, host } = program;
  const context = await openDevice(getDeviceList(program.verbs)[0]!);
  const target = targetOf(host);
  while (target.qp === undefined) await cpu.sleep(10 * microsecond);
  let rings = 0;
  for (; !target.isOver; rings++) {
    const qpn = rings % 2 === 0 ? target.qp.qpNum : 0x0f_fff0;
    const at = cpu.pushDeviceStore(context.info.uarBusAddress + uarOffset.sendDoorbell, 4, 'uncached');
    cpu.storeView.setUint32(at, qpn << sendDoorbell.fields.qpn.shift);
    cpu.commit('application', 100);
    await cpu.sleep(3 * microsecond);
  }
  return rings;
}

/**
 * Forks a child that opens the device, and kills it `killNs` later; after its end, the driver holds none of its
 * objects.
 */
export async function killer(program: ProgramContext): Promise<JsonValue> {
  const { cpu, args } = program;
  const { killNs } = args as { readonly killNs: readonly number[] };
  const left: Record<string, number>[] = [];
  for (const [index, ns] of killNs.entries()) {
    const child = program.fork(`child ${index}`, async ({ verbs, cpu: own }) => {
      await openDevice(getDeviceList(verbs)[0]!);
      await own.sleep(1000 * microsecond);
    });
    if (child === 'ENOMEM') throw new Error('fork: ENOMEM');
    await cpu.sleep(ns * 1000);
    child.kill('in the middle of ibv_open_device');
    while (!child.isEnded) await cpu.sleep(microsecond);
    left.push({ ...driverOf(program).resourceCounts() });
  }
  return left;
}
