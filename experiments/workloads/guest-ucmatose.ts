/**
 * The peer of a stock `ucmatose` in a guest, by rdma_cm and with the steps of that program (rdma-core, librdmacm/examples/cmatose.c). The
 * server sends first, as soon as the connection exists; each side sends all its messages from the memory into which it receives:
 *
 *     server  SEND × count ──► client          client  SEND × count of the same memory ──► server  disconnects
 *
 * ucmatose writes nothing into that memory. So its client sends back the server's bytes, which must be right; its server sends bytes that nothing
 * has written, which must be the same in every message.
 */
import type { ProgramContext } from '../../machine/index.ts';
import {
  IBV_WR_SEND,
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
import { GuestDataError } from './guest-pingpong.ts';

/** The default port of ucmatose (option -p). */
const sinPort = 7471;

export interface GuestUcmatoseArgs {
  /** The guest's command. */
  readonly guest: 'client' | 'server';
  /** Address of its server: the guest's. */
  readonly address: string;
  /** Port of the guest's server; left out: its default. */
  readonly port?: number;
  /** Like its options -C and -S. */
  readonly count: number;
  readonly sizeBytes: number;
}

export interface GuestUcmatoseResult {
  /** Messages that arrived, all of them right. */
  readonly messages: number;
}

/**
 * Acts as the peer of `ucmatose`.
 * @throws GuestDataError, WorkFailedError, RdmaEventError
 */
export async function guestUcmatose(
  program: ProgramContext,
  args: GuestUcmatoseArgs,
): Promise<GuestUcmatoseResult> {
  const channel = await rdmaCreateEventChannel(program.verbs);
  await (args.guest === 'client' ? serve(program, channel, args) : ask(program, channel, args));
  await rdmaDestroyEventChannel(channel);
  return { messages: args.count };
}

async function serve(
  program: ProgramContext,
  channel: RdmaEventChannel,
  args: GuestUcmatoseArgs,
): Promise<void> {
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaBindAddr(listener, { sinAddr: '::', sinPort });
  await rdmaListen(listener, 1);
  await program.exchange.put('listening', sinPort);
  try {
    const { id } = await expectEvent(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    const end = await endOf(program, id, args);
    await rdmaAccept(id, { responderResources: 1, initiatorDepth: 1 });
    await expectEvent(channel, RDMA_CM_EVENT_ESTABLISHED);
    const sent = patternOf(args.sizeBytes);
    program.memory.write(end.buffer, sent);
    await sendAll(end, args);
    await checkAll(program, end, args, sent);
    await leave(channel, id);
  } finally {
    await rdmaDestroyId(listener);
  }
}

async function ask(
  program: ProgramContext,
  channel: RdmaEventChannel,
  args: GuestUcmatoseArgs,
): Promise<void> {
  const { address, port = sinPort, sizeBytes } = args;
  const { id, end } = await connectToGuest(program, channel, { address, sinPort: port, readsMax: 1 }, (own) =>
    endOf(program, own, args),
  );
  await end.received();
  const first = program.memory.read(end.buffer + sizeBytes, sizeBytes);
  await checkAll(program, end, { ...args, count: args.count - 1 }, first, 1);
  program.memory.write(end.buffer, first);
  await sendAll(end, args);
  await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  await rdmaDisconnect(id);
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
}

/** Room for a message to send, and for all that arrive, whose receives are posted. */
async function endOf(
  program: ProgramContext,
  id: RdmaCmId,
  { count, sizeBytes }: GuestUcmatoseArgs,
): Promise<GuestEnd> {
  const end = await GuestEnd.create(program, id, { bufferBytes: (1 + count) * sizeBytes, receives: count });
  for (let at = 1; at <= count; at++) end.postReceive(end.buffer + at * sizeBytes, sizeBytes);
  return end;
}

const sendAll = (end: GuestEnd, { count, sizeBytes }: GuestUcmatoseArgs): Promise<void> =>
  end.carryOutAll({ opcode: IBV_WR_SEND }, end.buffer, sizeBytes, count);

/** Waits for `count` messages after the first `before`. @throws GuestDataError if one has other bytes */
async function checkAll(
  { memory }: ProgramContext,
  end: GuestEnd,
  { count, sizeBytes }: GuestUcmatoseArgs,
  expected: Uint8Array,
  before = 0,
): Promise<void> {
  for (let at = 1 + before; at <= count + before; at++) {
    await end.received();
    const bytes = memory.read(end.buffer + at * sizeBytes, sizeBytes);
    const wrong = bytes.findIndex((byte, index) => byte !== expected[index]);
    if (wrong >= 0)
      throw new GuestDataError(
        `byte ${wrong} of message ${at} is ${bytes[wrong]}, expected ${expected[wrong]}`,
      );
  }
}

async function leave(channel: RdmaEventChannel, id: RdmaCmId): Promise<void> {
  await rdmaDisconnect(id);
  await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
}

/** Bytes that depend on their place, with a period that divides no FPDU. */
const patternOf = (sizeBytes: number): Uint8Array =>
  Uint8Array.from({ length: sizeBytes }, (_, at) => (at * 7 + (at >> 8) * 13 + 5) & 0xff);
