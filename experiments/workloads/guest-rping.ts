/**
 * The peer of a stock `rping` in a guest, by rdma_cm and with the steps of that program (rdma-core,
 * librdmacm/examples/rping.c). Both sides announce their buffers by SENDs of 16 bytes; only the server moves data, by
 * READ and WRITE:
 *
 *     client  source ─SEND─►  server READs it  ─SEND─►  client  sink ─SEND─►  server WRITEs the same back  ─SEND─►
 *
 * Every ping must be the text that rping generates from its number. `rping -V` checks the same at its own end.
 */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  allocPd,
  createCq,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvMr,
  type IbvSendWr,
  postRecv,
  postSend,
  RDMA_CM_EVENT_ADDR_RESOLVED,
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_DISCONNECTED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_CM_EVENT_REJECTED,
  RDMA_CM_EVENT_ROUTE_RESOLVED,
  RDMA_PS_TCP,
  type RdmaCmEvent,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaAckCmEvent,
  rdmaBindAddr,
  rdmaConnect,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaCreateQp,
  rdmaDestroyEventChannel,
  rdmaDestroyId,
  rdmaDestroyQp,
  rdmaDisconnect,
  rdmaEventStr,
  rdmaGetCmEvent,
  rdmaListen,
  rdmaResolveAddr,
  rdmaResolveRoute,
  regMr,
} from '../../userlib/index.ts';
import { CompletionPoller } from './completion-poller.ts';
import { GuestDataError } from './guest-pingpong.ts';
import { allAccess } from './rc-states.ts';

/** The port of rping, and its default ping size (option -S). */
const sinPort = 7174;
const pingBytes = 64;
const infoBytes = 16;
const timeoutMs = 2000;
/** Number of connection attempts to the guest's server, which may only just have been started. */
const connectTries = 100;
const firstCharacter = 65;
const lastCharacter = 122;

export interface GuestRpingArgs {
  /** The guest's command. */
  readonly guest: 'client' | 'server';
  /** Address of its server; the guest's address on IP over InfiniBand or on Ethernet. */
  readonly address: string;
  /** Like the option -C of its client: a server ends when the client does. */
  readonly count: number;
}

/** The connection produced an unexpected event. */
export class RdmaEventError extends Error {
  override readonly name = 'RdmaEventError';
}

export interface GuestRpingResult {
  readonly pings: number;
}

/**
 * Acts as the peer of `rping`.
 * @throws GuestDataError, WorkFailedError, VerbsError, RdmaEventError
 */
export async function guestRping(program: ProgramContext, args: GuestRpingArgs): Promise<GuestRpingResult> {
  const channel = await rdmaCreateEventChannel(program.verbs);
  const pings = await (args.guest === 'client' ? serve(program, channel, args) : ask(program, channel, args));
  await rdmaDestroyEventChannel(channel);
  return { pings };
}

/** State of both sides: their buffers, and the connection's QP. */
class RpingEnd {
  readonly #program: ProgramContext;
  readonly #id: RdmaCmId;
  readonly #completions: CompletionPoller;
  readonly #region: IbvMr;
  /** Buffers for the data, for outgoing and for incoming announcements. */
  readonly data: number;
  readonly #sent: number;
  readonly #received: number;
  /** Completions polled before they were waited for. */
  #receives = 0;
  #sends = 0;

  private constructor(
    program: ProgramContext,
    id: RdmaCmId,
    completions: CompletionPoller,
    region: IbvMr,
    address: number,
  ) {
    this.#program = program;
    this.#id = id;
    this.#completions = completions;
    this.#region = region;
    this.data = address;
    this.#sent = address + 2 * pingBytes;
    this.#received = this.#sent + infoBytes;
  }

  static async create(program: ProgramContext, id: RdmaCmId): Promise<RpingEnd> {
    const verbs = id.verbs!;
    const pd = await allocPd(verbs);
    const lengthBytes = 2 * (pingBytes + infoBytes);
    const address = program.memory.map(lengthBytes);
    const region = await regMr(pd, address, lengthBytes, allAccess);
    const cq = await createCq(verbs, 32);
    const cap = { maxSendWr: 16, maxRecvWr: 2, maxSendSge: 1, maxRecvSge: 1 };
    await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
    const end = new RpingEnd(program, id, new CompletionPoller(cq), region, address);
    end.#postReceive();
    return end;
  }

  /** Waits for the peer's next 16 bytes. */
  async info(): Promise<DataView> {
    while (this.#receives === 0) await this.#take();
    this.#receives--;
    const bytes = this.#program.memory.read(this.#received, infoBytes);
    this.#postReceive();
    return new DataView(bytes.buffer);
  }

  /** Announces `address`, or tells the peer to continue. */
  async publish(address: number): Promise<void> {
    const info = new DataView(new ArrayBuffer(infoBytes));
    info.setBigUint64(0, BigInt(address));
    info.setUint32(8, this.#region.rkey);
    info.setUint32(12, pingBytes);
    this.#program.memory.write(this.#sent, new Uint8Array(info.buffer));
    await this.#program.cpu.settle();
    await this.#post({ opcode: IBV_WR_SEND, ...this.#listOf(this.#sent, infoBytes) });
  }

  /** Moves the data to or from the peer's announced buffer. */
  async move(opcode: number, to: DataView, lengthBytes: number): Promise<void> {
    const rdma = { remoteAddr: Number(to.getBigUint64(0)), rkey: to.getUint32(8) };
    await this.#post({ opcode, ...this.#listOf(this.data, lengthBytes), wr: { rdma } });
  }

  async #post(request: Omit<IbvSendWr, 'wrId' | 'sendFlags'>): Promise<void> {
    postSend(this.#id.qp!, { wrId: 2, sendFlags: IBV_SEND_SIGNALED, ...request });
    while (this.#sends === 0) await this.#take();
    this.#sends--;
  }

  async #take(): Promise<void> {
    const count = await this.#completions.wait();
    for (const { opcode } of this.#completions.taken.slice(0, count)) {
      if (opcode === IBV_WC_RECV) this.#receives++;
      else this.#sends++;
    }
  }

  #postReceive(): void {
    postRecv(this.#id.qp!, { wrId: 1, ...this.#listOf(this.#received, infoBytes) });
  }

  #listOf(addr: number, length: number) {
    return { sgList: [{ addr, length, lkey: this.#region.lkey }], numSge: 1 };
  }
}

/** Waits for the next event, which must be this one. */
async function expectEvent(channel: RdmaEventChannel, expected: number): Promise<RdmaCmEvent> {
  const event = (await rdmaGetCmEvent(channel))!;
  rdmaAckCmEvent(event);
  if (event.event !== expected) throw unexpected(event);
  return event;
}

const unexpected = ({ event, status }: RdmaCmEvent): RdmaEventError =>
  new RdmaEventError(`${rdmaEventStr(event)} with status ${status}`);

/** The server: the guest connects. */
async function serve(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { count }: GuestRpingArgs,
): Promise<number> {
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  // For either kind of address.
  await rdmaBindAddr(listener, { sinAddr: '::', sinPort });
  await rdmaListen(listener, 3);
  await program.exchange.put('listening', sinPort);
  const { id } = await expectEvent(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  const end = await RpingEnd.create(program, id);
  await rdmaAccept(id, { responderResources: 1, initiatorDepth: 1 });
  await expectEvent(channel, RDMA_CM_EVENT_ESTABLISHED);
  for (let ping = 0; ping < count; ping++) {
    const source = await end.info();
    await end.move(IBV_WR_RDMA_READ, source, source.getUint32(12));
    checkPing(program.memory.read(end.data, pingBytes), ping);
    await end.publish(0);
    await end.move(IBV_WR_RDMA_WRITE, await end.info(), pingBytes);
    await end.publish(0);
  }
  await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  await rdmaDisconnect(id);
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
  await rdmaDestroyId(listener);
  return count;
}

/** The client: repeats the connection attempt until the guest's server listens. */
async function ask(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { address, count }: GuestRpingArgs,
): Promise<number> {
  const { memory, cpu } = program;
  const { id, end } = await connect(program, channel, address);
  for (let ping = 0; ping < count; ping++) {
    const text = pingText(ping);
    memory.write(end.data, text);
    await cpu.settle();
    await end.publish(end.data);
    await end.info();
    await end.publish(end.data + pingBytes);
    await end.info();
    checkPing(memory.read(end.data + pingBytes, pingBytes), ping);
  }
  await rdmaDisconnect(id);
  await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
  return count;
}

async function connect(
  program: ProgramContext,
  channel: RdmaEventChannel,
  address: string,
): Promise<{ readonly id: RdmaCmId; readonly end: RpingEnd }> {
  for (let tries = 1; ; tries++) {
    const id = await rdmaCreateId(channel, null, RDMA_PS_TCP);
    await rdmaResolveAddr(id, null, { sinAddr: address, sinPort }, timeoutMs);
    await expectEvent(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    await rdmaResolveRoute(id, timeoutMs);
    await expectEvent(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    const end = await RpingEnd.create(program, id);
    await rdmaConnect(id, { responderResources: 1, initiatorDepth: 1, retryCount: 7, rnrRetryCount: 7 });
    const event = (await rdmaGetCmEvent(channel))!;
    rdmaAckCmEvent(event);
    if (event.event === RDMA_CM_EVENT_ESTABLISHED) return { id, end };
    if (event.event !== RDMA_CM_EVENT_REJECTED || tries === connectTries) throw unexpected(event);
    await rdmaDestroyQp(id);
    await rdmaDestroyId(id);
    await program.cpu.sleep(100 * psPerMs);
  }
}

/** Text of a ping: its number, and characters that begin one later each time. */
function pingText(ping: number): Uint8Array {
  const text = new TextEncoder().encode(`rdma-ping-${ping}: `);
  const bytes = new Uint8Array(pingBytes);
  bytes.set(text);
  const range = lastCharacter - firstCharacter + 1;
  for (let at = text.length; at < pingBytes - 1; at++)
    bytes[at] = firstCharacter + ((ping + at - text.length) % range);
  return bytes;
}

function checkPing(bytes: Uint8Array, ping: number): void {
  const expected = pingText(ping);
  const at = bytes.findIndex((byte, index) => byte !== expected[index]);
  if (at < 0) return;
  const text = new TextDecoder('latin1').decode(bytes);
  throw new GuestDataError(
    `byte ${at} of ping ${ping} differs from the text that rping sends: ${JSON.stringify(text)}`,
  );
}
