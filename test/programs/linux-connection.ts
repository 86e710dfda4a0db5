/**
 * Actions of stock librdmacm programs in the captures of `reference/wire` (rping, ucmatose, wt), for simulated hosts: a
 * connection with the same parameters, the same operations one after another, and its end by the same side.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';
import type { LinuxStep, LinuxWork } from './linux-scenario.ts';
import { takeWithin } from './outcomes.ts';

export interface LinuxConnection {
  readonly address: string;
  readonly port: number;
  /** Without it no listener is needed. */
  readonly isListening: boolean;
  /** Parameters of rdma_connect, and of rdma_accept. */
  readonly connect: Partial<ibv.RdmaConnParam>;
  readonly accept: Partial<ibv.RdmaConnParam>;
  readonly steps: readonly LinuxStep[];
  /** The side that disconnects; the peer answers. */
  readonly endsAt: number;
}

const bufferBytes = 16_384;
const limitUs = 1e6;
const access = ibv.IBV_ACCESS_LOCAL_WRITE | ibv.IBV_ACCESS_REMOTE_READ | ibv.IBV_ACCESS_REMOTE_WRITE;
const opcodes = { send: ibv.IBV_WR_SEND, write: ibv.IBV_WR_RDMA_WRITE, read: ibv.IBV_WR_RDMA_READ } as const;
const withImmediate = { send: ibv.IBV_WR_SEND_WITH_IMM, write: ibv.IBV_WR_RDMA_WRITE_WITH_IMM } as const;

async function next(channel: ibv.RdmaEventChannel): Promise<ibv.RdmaCmEvent> {
  const event = (await ibv.rdmaGetCmEvent(channel))!;
  ibv.rdmaAckCmEvent(event);
  return event;
}

/** The end of the connection that has this QP. */
class End {
  readonly #program: ProgramContext;
  readonly #qp: ibv.IbvQp;
  readonly #buffer: ibv.IbvMr;

  private constructor(program: ProgramContext, qp: ibv.IbvQp, buffer: ibv.IbvMr) {
    this.#program = program;
    this.#qp = qp;
    this.#buffer = buffer;
  }

  static async open(program: ProgramContext, id: ibv.RdmaCmId): Promise<End> {
    const pd = await ibv.allocPd(id.verbs!);
    const buffer = await ibv.regMr(pd, program.memory.map(bufferBytes), bufferBytes, access);
    const [sendCq, recvCq] = [await ibv.createCq(id.verbs!, 64), await ibv.createCq(id.verbs!, 64)];
    const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1 };
    const qp = await ibv.rdmaCreateQp(id, pd, { sendCq, recvCq, qpType: ibv.IBV_QPT_RC, cap, sqSigAll: 1 });
    return new End(program, qp, buffer);
  }

  async play({ poster, works }: LinuxStep, name: string): Promise<void> {
    const { node, exchange } = this.#program;
    const { addr, rkey } = this.#buffer;
    const received = works.filter(({ kind, flags }) => kind === 'send' || flags.includes('i')).length;
    if (node !== poster)
      for (let at = 0; at < received; at++)
        ibv.postRecv(this.#qp, { wrId: at, sgList: [this.#part(bufferBytes)], numSge: 1 });
    await exchange.put(name, { addr, rkey });
    const peer = await exchange.take<{ addr: number; rkey: number }>(name);
    if (node === poster) {
      for (const [at, work] of works.entries()) ibv.postSend(this.#qp, this.#requestOf(work, at, peer));
      await takeWithin(this.#qp.sendCq, works.length, limitUs);
    } else await takeWithin(this.#qp.recvCq, received, limitUs);
    await exchange.put(`${name} done`, true);
    await exchange.take(`${name} done`);
  }

  #requestOf(
    { kind, length, flags }: LinuxWork,
    wrId: number,
    { addr, rkey }: { addr: number; rkey: number },
  ): ibv.IbvSendWr {
    if (kind === 'fadd' || kind === 'cswp') throw new Error(`${kind} over a connection of rdma_cm`);
    const opcode = flags.includes('i') && kind !== 'read' ? withImmediate[kind] : opcodes[kind];
    const rdma = { remoteAddr: addr, rkey };
    const list = { sgList: [this.#part(length)], numSge: 1 };
    return { wrId, opcode, sendFlags: ibv.IBV_SEND_SIGNALED, immData: 7, ...list, wr: { rdma } };
  }

  #part(length: number): ibv.IbvSge {
    return { addr: this.#buffer.addr, length, lkey: this.#buffer.lkey };
  }
}

/** Runs all steps, and ends the connection. @returns the events of this end after that of its connection */
async function use(
  program: ProgramContext<LinuxConnection>,
  channel: ibv.RdmaEventChannel,
  id: ibv.RdmaCmId,
  end: End,
): Promise<JsonValue> {
  const { steps, endsAt } = program.args;
  for (const [at, step] of steps.entries()) await end.play(step, `step ${at}`);
  if (program.node === endsAt) await ibv.rdmaDisconnect(id);
  const { event } = await next(channel);
  if (program.node !== endsAt) await ibv.rdmaDisconnect(id);
  return ibv.rdmaEventStr(event);
}

export async function passive(program: ProgramContext<LinuxConnection>): Promise<JsonValue> {
  const { address, port, accept, isListening } = program.args;
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  const sinAddr = address.includes(':') ? '::' : '0.0.0.0';
  if (isListening) {
    await ibv.rdmaBindAddr(listener, { sinAddr, sinPort: port });
    await ibv.rdmaListen(listener, 1);
  }
  await program.exchange.put('ready', true);
  if (!isListening) return null;
  const { id } = await next(channel);
  const end = await End.open(program, id);
  await ibv.rdmaAccept(id, accept);
  await next(channel);
  return use(program, channel, id, end);
}

export async function active(program: ProgramContext<LinuxConnection>): Promise<JsonValue> {
  const { address, port, connect } = program.args;
  await program.exchange.take('ready');
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: address, sinPort: port }, 3000);
  await next(channel);
  await ibv.rdmaResolveRoute(id, 3000);
  await next(channel);
  const end = await End.open(program, id);
  await ibv.rdmaConnect(id, connect);
  const { event, status } = await next(channel);
  if (event !== ibv.RDMA_CM_EVENT_ESTABLISHED) return [ibv.rdmaEventStr(event), status];
  return use(program, channel, id, end);
}
