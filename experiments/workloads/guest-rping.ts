/**
 * The peer of a stock `rping` in a guest, by rdma_cm and with the steps of that program (rdma-core,
 * librdmacm/examples/rping.c). Both sides announce their buffers by SENDs of 16 bytes; only the server moves data, by
 * READ and WRITE:
 *
 *     client  source ─SEND─►  server READs it  ─SEND─►  client  sink ─SEND─►  server WRITEs the same back  ─SEND─►
 *
 * Every ping must be the text that rping generates from its number. `rping -V` checks the same at its own end.
 */
import type { ProgramContext } from '../../machine/index.ts';
import {
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
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

/** The port of rping, and its default ping size (option -S). */
const sinPort = 7174;
const usualPingBytes = 64;
const infoBytes = 16;
const firstCharacter = 65;
const lastCharacter = 122;
/** Characters that an error shows of an unexpected ping. */
const shownCharacters = 64;

export interface GuestRpingArgs {
  /** The guest's command. */
  readonly guest: 'client' | 'server';
  /** Address of its server; the guest's address on IP over InfiniBand or on Ethernet. */
  readonly address: string;
  /** Port of the guest's server; left out: its default. */
  readonly port?: number;
  /** Like the option -C of its client: a server ends when the client does. */
  readonly count: number;
  /** Like the option -S: 23 to 65,535. */
  readonly sizeBytes?: number;
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

/** Either side: its buffers for the data, and for outgoing and incoming announcements. */
class RpingEnd {
  readonly data: number;
  readonly #program: ProgramContext;
  readonly #end: GuestEnd;
  readonly #pingBytes: number;

  private constructor(program: ProgramContext, end: GuestEnd, pingBytes: number) {
    this.#program = program;
    this.#end = end;
    this.#pingBytes = pingBytes;
    this.data = end.buffer;
  }

  static async create(program: ProgramContext, id: RdmaCmId, pingBytes: number): Promise<RpingEnd> {
    const size = { bufferBytes: 2 * (pingBytes + infoBytes), receives: 2 };
    const end = new RpingEnd(program, await GuestEnd.create(program, id, size), pingBytes);
    end.#postReceive();
    return end;
  }

  /** Waits for the peer's next 16 bytes. */
  async info(): Promise<DataView> {
    await this.#end.received();
    const bytes = this.#program.memory.read(this.#received, infoBytes);
    this.#postReceive();
    return new DataView(bytes.buffer);
  }

  /** Announces `address`, or tells the peer to continue. */
  async publish(address: number): Promise<void> {
    const info = new DataView(new ArrayBuffer(infoBytes));
    info.setBigUint64(0, BigInt(address));
    info.setUint32(8, this.#end.region.rkey);
    info.setUint32(12, this.#pingBytes);
    this.#program.memory.write(this.#sent, new Uint8Array(info.buffer));
    await this.#end.carryOut({ opcode: IBV_WR_SEND }, this.#sent, infoBytes);
  }

  /** Moves the data to or from the peer's announced buffer. */
  async move(opcode: number, to: DataView, lengthBytes: number): Promise<void> {
    const rdma = { remoteAddr: to.getBigUint64(0), rkey: to.getUint32(8) };
    await this.#end.carryOut({ opcode, wr: { rdma } }, this.data, lengthBytes);
  }

  get #sent(): number {
    return this.data + 2 * this.#pingBytes;
  }

  get #received(): number {
    return this.#sent + infoBytes;
  }

  #postReceive(): void {
    this.#end.postReceive(this.#received, infoBytes);
  }
}

/** The server: the guest connects. */
async function serve(
  program: ProgramContext,
  channel: RdmaEventChannel,
  args: GuestRpingArgs,
): Promise<number> {
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  // For either kind of address.
  await rdmaBindAddr(listener, { sinAddr: '::', sinPort });
  await rdmaListen(listener, 3);
  await program.exchange.put('listening', sinPort);
  try {
    await serveOne(program, channel, args);
  } finally {
    // The next task of this program may listen at the same port.
    await rdmaDestroyId(listener);
  }
  return args.count;
}

async function serveOne(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { count, sizeBytes = usualPingBytes }: GuestRpingArgs,
): Promise<void> {
  const { id } = await expectEvent(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  const end = await RpingEnd.create(program, id, sizeBytes);
  await rdmaAccept(id, { responderResources: 1, initiatorDepth: 1 });
  await expectEvent(channel, RDMA_CM_EVENT_ESTABLISHED);
  for (let ping = 0; ping < count; ping++) {
    const source = await end.info();
    await end.move(IBV_WR_RDMA_READ, source, source.getUint32(12));
    checkPing(program.memory.read(end.data, sizeBytes), ping);
    await end.publish(0);
    await end.move(IBV_WR_RDMA_WRITE, await end.info(), sizeBytes);
    await end.publish(0);
  }
  await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  await rdmaDisconnect(id);
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
}

/** The client. */
async function ask(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { address, port = sinPort, count, sizeBytes = usualPingBytes }: GuestRpingArgs,
): Promise<number> {
  const { memory, cpu } = program;
  const { id, end } = await connectToGuest(program, channel, { address, sinPort: port, readsMax: 1 }, (own) =>
    RpingEnd.create(program, own, sizeBytes),
  );
  for (let ping = 0; ping < count; ping++) {
    const text = pingText(ping, sizeBytes);
    memory.write(end.data, text);
    await cpu.settle();
    await end.publish(end.data);
    await end.info();
    await end.publish(end.data + sizeBytes);
    await end.info();
    checkPing(memory.read(end.data + sizeBytes, sizeBytes), ping);
  }
  await rdmaDisconnect(id);
  await expectEvent(channel, RDMA_CM_EVENT_DISCONNECTED);
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
  return count;
}

/** Text of a ping: its number, and characters that begin one later each time. */
function pingText(ping: number, pingBytes: number): Uint8Array {
  const text = new TextEncoder().encode(`rdma-ping-${ping}: `);
  const bytes = new Uint8Array(pingBytes);
  bytes.set(text);
  const range = lastCharacter - firstCharacter + 1;
  for (let at = text.length; at < pingBytes - 1; at++)
    bytes[at] = firstCharacter + ((ping + at - text.length) % range);
  return bytes;
}

function checkPing(bytes: Uint8Array, ping: number): void {
  const expected = pingText(ping, bytes.length);
  const at = bytes.findIndex((byte, index) => byte !== expected[index]);
  if (at < 0) return;
  const text = new TextDecoder('latin1').decode(bytes);
  throw new GuestDataError(
    `byte ${at} of ping ${ping} differs from the text that rping sends: ${JSON.stringify(text.slice(0, shownCharacters))}`,
  );
}
