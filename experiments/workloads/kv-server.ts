/**
 * A server thread of the store: polls the slots of all clients in rotation, one slot of each, executes the requests and
 * answers by datagrams. Requests cause neither completions nor receives.
 */

import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  createQp,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_WR_SEND_WITH_IMM,
  type IbvQp,
  type IbvSendWr,
} from '../../userlib/index.ts';
import { CompletionPoller } from './completion-poller.ts';
import { countCycles } from './core-cycles.ts';
import { awaitPeerEnd, hostWorkOf } from './host-work.ts';
import { ItemTable } from './kv-items.ts';
import {
  endLength,
  type KvArgs,
  type KvSide,
  lengthFieldBytes,
  linesOf,
  putBytes,
  slotBytes,
  slotOffset,
  slotPollCycles,
} from './kv-plan.ts';
import { serverBegins } from './kv-start.ts';
import { openPerfEndpoint, ucSteps } from './perf-link.ts';
import { announceEnd } from './perf-start.ts';
import { handleTo, type PortAddress, peerFrom } from './port-address.ts';
import { connectQps, createBuffer, type RcEndpoint } from './rc-endpoint.ts';
import { SparselySignalled } from './sparsely-signalled.ts';
import { connectUd, initUd, qkey } from './unreliable-states.ts';

/** With fewer entries, the device reads the consumer counter. */
const cqEntriesLeast = 128;
const pageMask = ~4095;

/** A client's announcement of the QP that receives its answers. */
export interface AnswerQp extends PortAddress {
  readonly client: number;
  readonly qpNum: number;
}

export async function kvServer(program: ProgramContext<KvArgs>): Promise<KvSide> {
  const args = program.args;
  const endpoint = await openPerfEndpoint(program, args);
  const { thread = 0 } = args;
  const region =
    thread === 0
      ? await openRegion(endpoint, args)
      : await program.exchange.take<number>(`kv.region.${thread}`);
  const server = new Server(endpoint, args, region, await openAnswers(endpoint, args));
  if (args.warmupIterations !== undefined) await server.serve();
  if (args.warmupIterations !== undefined) await clientsEnd(program, args);
  await serverBegins(program);
  const cyclesSpent = countCycles(program);
  const requests = await server.serve();
  const cycles = cyclesSpent();
  await clientsEnd(program, args);
  const side: KvSide = { cycles, requests, ...hostWorkOf(program) };
  await announceEnd(program);
  return side;
}

/** Under an offered load, every client reports when its last answer has arrived; the first thread receives the reports. */
async function clientsEnd(program: ProgramContext, { load, threads = 1, thread = 0 }: KvArgs): Promise<void> {
  if (load === undefined || thread !== 0) return;
  for (let client = 0; client < threads; client++) await awaitPeerEnd(program);
}

/** The request region of all threads, which each client writes over its own UC QP: the first thread owns all of it. */
async function openRegion(endpoint: RcEndpoint, args: KvArgs): Promise<number> {
  const { threads: clients = 1, kv, mtuBytes } = args;
  const { context, pd } = endpoint;
  const lengthBytes = kv.servers * clients * kv.window * slotBytes(kv);
  const { address, region } = await createBuffer(endpoint, lengthBytes);
  const cq = await createCq(context, 1);
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 };
  for (let client = 0; client < clients; client++) {
    const qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_UC, cap: { ...cap } });
    const note = { address, rkey: region.rkey };
    await connectQps(endpoint, [qp], `kv.${client}`, note, {
      ...ucSteps(endpoint, mtuBytes),
      beforeReady: () => {},
    });
  }
  return address;
}

/** Source and destinations of this thread's answers. */
interface Answers {
  readonly qp: IbvQp;
  readonly sends: SparselySignalled;
  /** A request to each client. */
  readonly wrs: readonly IbvSendWr[];
  /** Buffers of answers that are not inline, until they were sent: one for each slot. */
  readonly buffer: { readonly address: number; readonly lkey: number } | undefined;
}

async function openAnswers(endpoint: RcEndpoint, args: KvArgs): Promise<Answers> {
  const { threads: clients = 1, thread = 0, kv, txDepth, cqModeration, inlineBytes } = args;
  const { context, pd, program } = endpoint;
  const isInline = kv.valueBytes <= inlineBytes;
  const sendCq = await createCq(context, Math.max(cqEntriesLeast, txDepth));
  const recvCq = await createCq(context, 1);
  const cap = {
    maxSendWr: txDepth,
    maxRecvWr: 1,
    maxSendSge: 1,
    maxRecvSge: 1,
    maxInlineData: isInline ? kv.valueBytes : 0,
  };
  const qp = await createQp(pd, { sendCq, recvCq, qpType: IBV_QPT_UD, cap });
  await initUd(qp);
  await connectUd(qp, program.random.below(1 << 24));
  const wrs: IbvSendWr[] = [];
  for (let count = 0; count < clients; count++) {
    const value = await program.exchange.take<AnswerQp>(`kv.answers.${thread}`);
    const { client, qpNum, ...there } = value;
    const ah = await handleTo(pd, peerFrom(endpoint.own, there));
    wrs[client] = {
      wrId: client,
      sgList: [{ addr: 0, length: kv.valueBytes, lkey: 0 }],
      numSge: 1,
      opcode: IBV_WR_SEND_WITH_IMM,
      sendFlags: 0,
      // Tells the client which thread answers: the answers of one thread arrive in the order of its requests.
      immData: thread,
      wr: { ud: { ah, remoteQpn: qpNum, remoteQkey: qkey } },
    };
  }
  const held = isInline ? undefined : await createBuffer(endpoint, clients * kv.window * kv.valueBytes);
  return {
    qp,
    sends: new SparselySignalled(qp, new CompletionPoller(sendCq), txDepth, cqModeration),
    wrs,
    buffer: held === undefined ? undefined : { address: held.address, lkey: held.region.lkey },
  };
}

/** A client from the view of a server thread. */
interface ServedClient {
  readonly number: number;
  /** By index in the window: the slot, and the address of the last byte of its key. */
  readonly slots: readonly { readonly address: number; readonly lastPhysical: number }[];
  /** The index of its next request. */
  place: number;
}

class Server {
  readonly #program: ProgramContext;
  readonly #args: KvArgs;
  readonly #answers: Answers;
  readonly #items: ItemTable;
  readonly #clients: readonly ServedClient[];
  /** The client that is polled first. */
  #first = 0;
  readonly #request: Uint8Array<ArrayBuffer>;
  readonly #cleared: Uint8Array<ArrayBuffer>;
  readonly #value: Uint8Array<ArrayBuffer>;
  #endedCount = 0;
  #getCount = 0;
  #putCount = 0;

  constructor({ program }: RcEndpoint, args: KvArgs, region: number, answers: Answers) {
    const { kv, threads: clients = 1, thread: server = 0 } = args;
    const { memory } = program;
    this.#program = program;
    this.#args = args;
    this.#answers = answers;
    this.#items = new ItemTable(kv, memory, server);
    this.#request = new Uint8Array(putBytes(kv));
    this.#cleared = new Uint8Array(lengthFieldBytes + kv.keyBytes);
    this.#value = new Uint8Array(kv.valueBytes);
    const slotOf = (client: number, place: number) => {
      const address = region + slotOffset(kv, { clients, server, client, place });
      return { address, lastPhysical: memory.process.physicalAddress(address + slotBytes(kv) - 1) };
    };
    this.#clients = Array.from({ length: clients }, (_, number) => ({
      number,
      slots: Array.from({ length: kv.window }, (_unused, place) => slotOf(number, place)),
      place: 0,
    }));
  }

  /** Serves until every client has reported its end. */
  async serve(): Promise<KvSide['requests']> {
    const { cpu, memory } = this.#program;
    const { process } = memory;
    const clients = this.#clients;
    const passCycles = clients.length * slotPollCycles;
    const isFilled = ({ slots, place }: ServedClient): boolean =>
      process.bytesNow[slots[place]!.lastPhysical] !== 0;
    const hasRequest = (): boolean => clients.some(isFilled);
    [this.#endedCount, this.#getCount, this.#putCount] = [0, 0, 0];
    while (this.#endedCount < clients.length) {
      await cpu.settle();
      const spun = cpu.spinOver(this.#pages(), passCycles, hasRequest);
      cpu.waitsIn(() => 'the slots of its clients');
      await spun;
      cpu.charge('application', passCycles);
      // A pass sees memory as it was when the pass began.
      const found = clients.map((_, at) => clients[(this.#first + at) % clients.length]!).filter(isFilled);
      for (const client of found) {
        if (this.#answers.sends.isFull) await this.#answers.sends.free();
        this.#take(client);
      }
      this.#first = (this.#first + 1) % clients.length;
    }
    await cpu.settle();
    return { getCount: this.#getCount, putCount: this.#putCount, timesPs: [] };
  }

  /** The pages of the slots that are polled next. */
  #pages(): readonly number[] {
    return [...new Set(this.#clients.map(({ slots, place }) => slots[place]!.lastPhysical & pageMask))];
  }

  #take(client: ServedClient): void {
    const { cpu, memory, verbs } = this.#program;
    const { kv } = this.#args;
    const request = this.#request;
    const { address } = client.slots[client.place]!;
    memory.readInto(address + slotBytes(kv) - request.length, request);
    memory.write(address + slotBytes(kv) - this.#cleared.length, this.#cleared);
    const place = client.place;
    client.place = (place + 1) % kv.window;
    const length = request[kv.valueBytes]! | (request[kv.valueBytes + 1]! << 8);
    const readBytes = length === 0 ? kv.keyBytes : request.length;
    cpu.charge('application', linesOf(readBytes) * verbs.costs.readDmaLine);
    if (length === endLength) {
      this.#endedCount++;
      return;
    }
    const value = this.#items.valueAddress(request, kv.valueBytes + lengthFieldBytes);
    cpu.charge('application', kv.lookupCycles + (length === 0 ? 0 : this.#copyCycles(length)));
    if (length === 0) {
      this.#getCount++;
      this.#answer(client, place, value);
      return;
    }
    this.#putCount++;
    memory.write(value, request.subarray(0, kv.valueBytes));
    this.#answer(client, place, undefined);
  }

  #answer({ number }: ServedClient, place: number, value: number | undefined): void {
    const { kv } = this.#args;
    const { wrs, sends, buffer } = this.#answers;
    const wr = wrs[number]!;
    wr.numSge = value === undefined ? 0 : 1;
    if (value !== undefined) {
      const segment = wr.sgList[0]!;
      [segment.addr, segment.lkey] = [value, 0];
      if (buffer !== undefined) {
        segment.addr = buffer.address + (number * kv.window + place) * kv.valueBytes;
        segment.lkey = buffer.lkey;
        this.#copy(value, segment.addr);
      }
    }
    sends.post(wr, value !== undefined && buffer === undefined);
  }

  /** A later PUT must not change an answer in flight. */
  #copy(from: number, to: number): void {
    const { memory, cpu } = this.#program;
    memory.readInto(from, this.#value);
    memory.write(to, this.#value);
    cpu.charge('copy', this.#copyCycles(this.#value.length));
  }

  #copyCycles(lengthBytes: number): number {
    const { copyFixed, copyBytesPerCycle } = this.#program.verbs.costs;
    return copyFixed + Math.ceil(lengthBytes / copyBytesPerCycle);
  }
}
