/**
 * The peer of stock perftest in a guest, by rdma_cm (option -R), with the steps of those programs (perftest 4.5-0.17: write_bw.c, read_bw.c,
 * send_bw.c and the three _lat.c; perftest_communication.c): a control connection, by whose SENDs both sides exchange versions, settings and
 * keys, one message each way at a time; and a connection for the data.
 *
 *     client  ─ control: version, buffers, MTU, keys ─►  server        then the data connection, keys three times, the test, figures
 *             ◄──────────── the same ────────────────
 *
 * perftest checks no data. The guest's ib_read_bw is a server whose memory may be read and written over iWARP, so each READ of this side brings
 * back bytes that it has just written, and must bring back the same.
 */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_DISCONNECTED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_PS_TCP,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaBindAddr,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaDestroyEventChannel,
  rdmaDestroyId,
  rdmaDestroyQp,
  rdmaDisconnect,
  rdmaListen,
} from '../../userlib/index.ts';
import { connectToGuest, expectEvent } from './guest-connection.ts';
import { GuestEnd } from './guest-end.ts';
import { noKeys, type PerftestControl, perftestControl } from './perftest-control.ts';
import { type Perftest, PerftestData, perftestSteps } from './perftest-steps.ts';

/** The default port of perftest (option -p). */
const sinPort = 18_515;
/** READs in flight either way: perftest's option -o. */
const readsMax = 16;
/** Time for the guest's server until its last SEND has completed: siw ends it with LOC_QP_OP_ERR if the connection ends before. */
const lastSendPs = 200 * psPerMs;

export interface GuestPerftestArgs {
  /** The guest's command. */
  readonly guest: 'client' | 'server';
  readonly test: Perftest;
  /** Address of its server: the guest's. */
  readonly address: string;
  /** Port of the guest's server; left out: its default. */
  readonly port?: number;
  /** Like its options -s and -n. ib_send_bw takes an odd number, for which it needs no credits of its server. */
  readonly sizeBytes: number;
  readonly iterations: number;
}

/** Bytes of messages that were moved by this side, or that the guest said it had moved. */
export interface GuestPerftestResult {
  readonly bytes: number;
}

type Prepare = (id: RdmaCmId) => Promise<GuestEnd>;
type Open = (prepare: Prepare) => Promise<GuestEnd>;

/**
 * Acts as the peer of a program of perftest.
 * @throws GuestDataError, WorkFailedError, RdmaEventError
 */
export async function guestPerftest(
  program: ProgramContext,
  args: GuestPerftestArgs,
): Promise<GuestPerftestResult> {
  const channel = await rdmaCreateEventChannel(program.verbs);
  const isClient = args.guest === 'server';
  const listener = isClient ? undefined : await listen(program, channel);
  const open: Open = isClient
    ? (prepare) => connect(program, channel, args, prepare)
    : (prepare) => accept(channel, prepare);
  let bytes = 0;
  try {
    const control = await perftestControl(program, isClient, open);
    await control.agree();
    const data = await connectData(program, args, control, open);
    bytes = await runTest(program, args, control, data);
    if (isClient) await program.cpu.sleep(lastSendPs);
    await disconnect(channel, [data.end.id, control.end.id], isClient);
  } finally {
    // The next task of this program may listen at the same port.
    if (listener !== undefined) await rdmaDestroyId(listener);
  }
  await rdmaDestroyEventChannel(channel);
  return { bytes };
}

async function listen(program: ProgramContext, channel: RdmaEventChannel): Promise<RdmaCmId> {
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaBindAddr(listener, { sinAddr: '::', sinPort });
  await rdmaListen(listener, 2);
  await program.exchange.put('listening', sinPort);
  return listener;
}

async function accept(channel: RdmaEventChannel, prepare: Prepare): Promise<GuestEnd> {
  const { id } = await expectEvent(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  const end = await prepare(id);
  await rdmaAccept(id, { responderResources: readsMax, initiatorDepth: readsMax });
  await expectEvent(channel, RDMA_CM_EVENT_ESTABLISHED);
  return end;
}

async function connect(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { address, port = sinPort }: GuestPerftestArgs,
  prepare: Prepare,
): Promise<GuestEnd> {
  return (await connectToGuest(program, channel, { address, sinPort: port, readsMax }, prepare)).end;
}

/** Both sides exchange keys before the data connection, when the client may open it, and after it. */
async function connectData(
  program: ProgramContext,
  args: GuestPerftestArgs,
  control: PerftestControl,
  open: Open,
): Promise<PerftestData> {
  const { sizeBytes, iterations, test } = args;
  const { receives } = perftestSteps[test];
  await control.exchangeKeys(noKeys);
  const size = { bufferBytes: 2 * sizeBytes, receives: receives === 'all' ? iterations : 1 };
  const end = await open(async (id) => {
    const made = await GuestEnd.create(program, id, size);
    if (receives === 'all')
      for (let posted = 0; posted < iterations; posted++)
        made.postReceive(made.buffer + sizeBytes, sizeBytes);
    return made;
  });
  await control.exchangeKeys(noKeys);
  return new PerftestData(program, end, args);
}

/** @returns bytes of all messages */
async function runTest(
  program: ProgramContext,
  { guest, test, sizeBytes, iterations }: GuestPerftestArgs,
  control: PerftestControl,
  data: PerftestData,
): Promise<number> {
  const { handshakes, asks, answers, hasReport, isClosed } = perftestSteps[test];
  for (let times = 0; times < handshakes; times++) data.peer = await control.exchangeKeys(data.keys);
  program.progress(0, iterations);
  await (guest === 'server' ? asks : answers)(data);
  if (hasReport) {
    await control.exchangeKeys(data.keys);
    await control.exchangeReport(sizeBytes, iterations);
  }
  if (isClosed) await control.exchangeKeys(data.keys);
  return sizeBytes * iterations;
}

/** The client disconnects; the guest's side may have gone by itself. */
async function disconnect(
  channel: RdmaEventChannel,
  ids: readonly RdmaCmId[],
  isClient: boolean,
): Promise<void> {
  if (isClient) for (const id of ids) await rdmaDisconnect(id);
  for (const _id of ids) await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  for (const id of ids) {
    if (!isClient) await rdmaDisconnect(id);
    await rdmaDestroyQp(id);
    await rdmaDestroyId(id);
  }
}
