/** One SEND, one WRITE and one READ of an object of the smallest sizes: the shortest exchange that a device of any size can carry. */
import { psPerMs } from '../../base/units.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  closeDevice,
  createCq,
  getDeviceList,
  IBV_PORT_ACTIVE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  type IbvSendWr,
  IbvWc,
  openDevice,
  postRecv,
  postSend,
  queryPort,
  spinCq,
} from '../../userlib/index.ts';
import { areEqual, patternOf, readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

/** A cable trains for at most 10 s. */
const patienceMs = 12_000;
const pollMs = 5;
const bytes = 40;
/** Target of the WRITE, and of the READ of the peer's pattern. */
const written = 1024;
const read = 2048;
const sent = 3072;

/** On a machine whose link comes up late, a program that does not wait finds a port without a LID. */
async function portIsActive({ cpu, verbs }: ProgramContext): Promise<void> {
  const context = await openDevice(getDeviceList(verbs)[0]!);
  for (let waitedMs = 0; (await queryPort(context, 1)).state !== IBV_PORT_ACTIVE; waitedMs += pollMs) {
    if (waitedMs > patienceMs) throw new Error('port 1 is not active');
    await cpu.sleep(pollMs * psPerMs);
  }
  await closeDevice(context);
}

async function open(program: ProgramContext, maxInlineData = 0): Promise<{ side: Side; pair: Pair }> {
  await portIsActive(program);
  const side = await Side.open(program);
  const sendCq = await createCq(side.context, 1);
  const recvCq = await createCq(side.context, 1);
  const pair = await side.pair('exchange', {
    sendCq,
    recvCq,
    cap: { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData },
    // Longer than the slowest machine needs.
    timeoutCode: 31,
    readsMax: 1,
    beforeReady: ({ qp, buffer }) => {
      side.write(buffer, patternOf(program.node, bytes));
      postRecv(qp, receiveOf([segment(buffer, sent, bytes)]));
    },
  });
  return { side, pair };
}

async function statusOf(pair: Pair, request: IbvSendWr): Promise<number> {
  const wcs = [new IbvWc()];
  postSend(pair.qp, request);
  await spinCq(pair.sendCq, 1, wcs);
  return wcs[0]!.status;
}

/** Sends, writes and reads. @returns the errors */
export const asker = (program: ProgramContext): Promise<JsonValue> => ask(program, 0);

/** The same program with requests short enough for BlueFlame. */
export const inlineAsker = (program: ProgramContext): Promise<JsonValue> => ask(program, IBV_SEND_INLINE);

async function ask(program: ProgramContext, flag: number): Promise<JsonValue> {
  const isInline = flag !== 0;
  const { side, pair } = await open(program, isInline ? bytes : 0);
  const own = [segment(pair.buffer, 0, bytes)];
  const sendFlags = IBV_SEND_SIGNALED | flag;
  const statuses = [
    await statusOf(pair, sendOf(own, { sendFlags })),
    await statusOf(pair, writeOf(own, remoteAt(pair, written), { sendFlags })),
    await statusOf(pair, readOf([segment(pair.buffer, read, bytes)], remoteAt(pair, 0))),
  ];
  const isRead = areEqual(side.read(pair.buffer, bytes, read), patternOf(1 - program.node, bytes));
  await side.barrier('over');
  return [
    ...statuses.flatMap((status, at) =>
      status === IBV_WC_SUCCESS ? [] : [`request ${at}: status ${status}`],
    ),
    ...(isRead ? [] : ['other bytes read']),
  ];
}

/** Receives and checks its memory. @returns the errors */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { side, pair } = await open(program);
  const wcs = [new IbvWc()];
  await spinCq(pair.recvCq, 1, wcs);
  await side.barrier('over');
  const expected = patternOf(1 - program.node, bytes);
  return [
    ...(wcs[0]!.status === IBV_WC_SUCCESS ? [] : [`receive: status ${wcs[0]!.status}`]),
    ...(areEqual(side.read(pair.buffer, bytes, sent), expected) ? [] : ['other bytes received']),
    ...(areEqual(side.read(pair.buffer, bytes, written), expected) ? [] : ['other bytes written']),
  ];
}
