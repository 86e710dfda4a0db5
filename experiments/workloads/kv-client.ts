/**
 * A client of the store: keeps up to a window of unanswered requests, and checks the answers: a GET must return a value
 * of its key, and its own last PUT.
 */
import { InvariantError } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  createQp,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvWc,
} from '../../userlib/index.ts';
import { CompletionPoller, WorkFailedError } from './completion-poller.ts';
import { countCycles } from './core-cycles.ts';
import { endOwnWork, hostWorkOf } from './host-work.ts';
import { checkAnswer, putStamp, serverOfItem, writeKey, writeValue } from './kv-items.ts';
import {
  answerBytes,
  endLength,
  type KvArgs,
  type KvSide,
  lengthFieldBytes,
  linesOf,
  putBytes,
  slotBytes,
  slotOffset,
} from './kv-plan.ts';
import type { AnswerQp } from './kv-server.ts';
import { clientBegins } from './kv-start.ts';
import { OfferedLoad } from './offered-load.ts';
import { grhBytes } from './perf-buffer.ts';
import { openPerfEndpoint, postReceive, ucSteps } from './perf-link.ts';
import { Places } from './perf-places.ts';
import { resultOf } from './perf-rates.ts';
import { announceEnd } from './perf-start.ts';
import { announcedOf } from './port-address.ts';
import { connectQps, createBuffer, type RcBuffer, type RcEndpoint } from './rc-endpoint.ts';
import { SparselySignalled } from './sparsely-signalled.ts';
import { connectUd, initUd } from './unreliable-states.ts';

/** With fewer entries, the device reads the consumer counter. */
const cqEntriesLeast = 128;

export async function kvClient(program: ProgramContext<KvArgs>): Promise<KvSide> {
  const args = program.args;
  const client = await Client.open(program, args);
  if (args.warmupIterations !== undefined) await client.ask(args.warmupIterations);
  await clientBegins(program);
  const cyclesSpent = countCycles(program);
  const side: KvSide = {
    ...(await client.ask(args.iterations)),
    cycles: cyclesSpent(),
    ...hostWorkOf(program),
  };
  await announceEnd(program);
  return side;
}

/** The request region at the server. */
interface Region {
  readonly address: number;
  readonly rkey: number;
}

/** An unanswered request. */
interface Asked {
  item: number;
  isGet: boolean;
  /** For a GET: this client's last PUT of the key at the time, 0 for none. */
  ownStamp: number;
  startPs: number;
}

/** A thread of the server as a client sees it. */
interface AskedServer {
  readonly number: number;
  /** By index in the window. */
  readonly asked: readonly Asked[];
  askedCount: number;
  answeredCount: number;
}

interface ClientParts {
  readonly requests: SparselySignalled;
  readonly answers: CompletionPoller;
  /** Receives the answers. */
  readonly answerQp: IbvQp;
  /** All receives; each is posted again when its answer was processed. */
  readonly receives: readonly IbvRecvWr[];
  readonly servers: readonly AskedServer[];
  readonly region: Region;
  readonly buffer: RcBuffer;
}

class Client {
  readonly #program: ProgramContext;
  readonly #args: KvArgs;
  readonly #parts: ClientParts;
  readonly #number: number;
  readonly #keys: Places;
  readonly #request: Uint8Array<ArrayBuffer>;
  readonly #value: Uint8Array<ArrayBuffer>;
  readonly #wr: IbvSendWr;
  /** By item: the stamp of this client's last PUT. */
  readonly #ownStamps = new Map<number, number>();
  #putCount = 0;

  static async open(program: ProgramContext, args: KvArgs): Promise<Client> {
    return new Client(program, args, await openParts(await openPerfEndpoint(program, args), args));
  }

  private constructor(program: ProgramContext, args: KvArgs, parts: ClientParts) {
    const { kv, thread = 0 } = args;
    this.#program = program;
    this.#args = args;
    this.#parts = parts;
    this.#number = thread;
    this.#keys = new Places({ bytes: kv.items, pattern: kv.pattern }, 1, program.random);
    this.#request = new Uint8Array(putBytes(kv));
    this.#value = new Uint8Array(kv.valueBytes);
    this.#wr = {
      wrId: 0,
      sgList: [{ addr: 0, length: 0, lkey: parts.buffer.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: 0,
      wr: { rdma: { remoteAddr: 0, rkey: parts.region.rkey } },
    };
  }

  /** Sends this many requests and receives their answers; then tells every server thread that no more follow. */
  async ask(count: number): Promise<Pick<KvSide, 'result' | 'requests' | 'load'>> {
    const { program, parts } = { program: this.#program, parts: this.#parts };
    const { cpu } = program;
    const { window, valueBytes } = this.#args.kv;
    const load = this.#offeredLoad(count);
    const startPs = cpu.localPs;
    const [postedPs, doneCounts, donePs, timesPs]: [number[], number[], number[], number[]] = [
      [],
      [],
      [],
      [],
    ];
    const putsBefore = this.#putCount;
    while (timesPs.length < count) {
      load?.admit(cpu.localPs);
      while (postedPs.length < count && postedPs.length - timesPs.length < window) {
        if (load?.waitingCount === 0) break;
        postedPs.push(cpu.localPs);
        await this.#post(load?.take() ?? cpu.localPs);
        load?.admit(cpu.localPs);
      }
      const { answers } = parts;
      const untilPs = load?.waitingCount === 0 ? load.nextPs : undefined;
      const taken = answers.checked(await answers.arrival(untilPs));
      for (let at = 0; at < taken; at++) timesPs.push(this.#take(answers.taken[at]!));
      doneCounts.push(timesPs.length);
      donePs.push(cpu.localPs);
      program.progress(timesPs.length, count);
    }
    const putCount = this.#putCount - putsBefore;
    if (load !== undefined) await endOwnWork(program);
    await this.#end();
    return {
      result:
        load === undefined
          ? resultOf(valueBytes, count, postedPs, doneCounts, donePs, 1)
          : resultOf(valueBytes, count, [startPs], [count], [donePs.at(-1)!], 1),
      requests: { getCount: count - putCount, putCount, timesPs },
      ...(load === undefined ? {} : { load: { ...load.counts(), timesPs } }),
    };
  }

  #offeredLoad(count: number): OfferedLoad | undefined {
    const { load, threads = 1, thread = 0 } = this.#args;
    const { random, cpu } = this.#program;
    return load === undefined
      ? undefined
      : new OfferedLoad(load, count, random, cpu.localPs, { thread, threads });
  }

  /** Draws a request that is due since `startPs`, and writes it into the server's memory. */
  async #post(startPs: number): Promise<void> {
    const { random } = this.#program;
    const { kv } = this.#args;
    const item = this.#keys.take();
    const isGet = random.below(100) < kv.getPercent;
    const server = this.#parts.servers[serverOfItem(kv, item)]!;
    const place = server.askedCount % kv.window;
    const asked = server.asked[place]!;
    asked.item = item;
    asked.isGet = isGet;
    asked.startPs = startPs;
    if (!isGet) this.#ownStamps.set(item, putStamp(this.#number, ++this.#putCount));
    asked.ownStamp = this.#ownStamps.get(item) ?? 0;
    const request = this.#request;
    writeKey(request, kv.valueBytes + lengthFieldBytes, kv, item);
    if (!isGet) {
      writeValue(request, 0, kv, item, asked.ownStamp);
      setLength(request, kv.valueBytes, kv.valueBytes);
    }
    await this.#write(server, isGet ? kv.keyBytes : request.length);
  }

  /** Writes the last bytes of the request to the end of the next slot of a server thread. */
  async #write(server: AskedServer, lengthBytes: number): Promise<void> {
    const { memory, cpu, verbs } = this.#program;
    const { kv, threads: clients = 1, inlineBytes } = this.#args;
    const { requests, region, buffer } = this.#parts;
    const [place, end] = [server.askedCount % kv.window, slotBytes(kv)];
    const slot = { server: server.number, client: this.#number, place };
    const ownAddress = buffer.address + (server.number * kv.window + place + 1) * end - lengthBytes;
    memory.write(ownAddress, this.#request.subarray(this.#request.length - lengthBytes));
    const { copyFixed, copyBytesPerCycle } = verbs.costs;
    cpu.charge('application', copyFixed + Math.ceil(lengthBytes / copyBytesPerCycle));
    const segment = this.#wr.sgList[0]!;
    [segment.addr, segment.length] = [ownAddress, lengthBytes];
    this.#wr.wr!.rdma!.remoteAddr = region.address + slotOffset(kv, { clients, ...slot }) + end - lengthBytes;
    if (requests.isFull) await requests.free();
    requests.post(this.#wr, lengthBytes <= inlineBytes);
    server.askedCount++;
  }

  /**
   * Processes an answer.
   * @returns the duration of its request
   */
  #take(wc: IbvWc): number {
    const { cpu, memory, verbs } = this.#program;
    const { kv } = this.#args;
    const { servers, receives, answerQp } = this.#parts;
    const server = servers[wc.immData]!;
    const asked = server.asked[server.answeredCount++ % kv.window]!;
    const receive = receives[wc.wrId]!;
    const answered = wc.byteLen - grhBytes;
    if (answered !== (asked.isGet ? kv.valueBytes : 0))
      throw new WorkFailedError(`${answered} bytes answer a ${asked.isGet ? 'GET' : 'PUT'}`);
    if (asked.isGet) {
      cpu.charge('application', linesOf(kv.valueBytes) * verbs.costs.readDmaLine);
      memory.readInto(receive.sgList[0]!.addr + grhBytes, this.#value);
      checkAnswer(this.#value, kv, { client: this.#number, ...asked });
    }
    postReceive(answerQp, receive);
    return cpu.localPs - asked.startPs;
  }

  async #end(): Promise<void> {
    const { kv } = this.#args;
    for (const server of this.#parts.servers) {
      if (server.askedCount !== server.answeredCount)
        throw new InvariantError('answers', server.answeredCount, `${server.askedCount}`);
      setLength(this.#request, kv.valueBytes, endLength);
      writeKey(this.#request, kv.valueBytes + lengthFieldBytes, kv, 0);
      await this.#write(server, lengthFieldBytes + kv.keyBytes);
      server.answeredCount++;
    }
    await this.#program.cpu.settle();
  }
}

function setLength(request: Uint8Array, at: number, length: number): void {
  request[at] = length & 0xff;
  request[at + 1] = length >>> 8;
}

async function openParts(endpoint: RcEndpoint, args: KvArgs): Promise<ClientParts> {
  const { kv, thread = 0, txDepth, rxDepth, cqModeration, mtuBytes, inlineBytes } = args;
  const { context, pd, program } = endpoint;
  const sendCq = await createCq(context, Math.max(cqEntriesLeast, txDepth));
  const answerCq = await createCq(context, Math.max(cqEntriesLeast, rxDepth));
  const lengths = [kv.keyBytes, lengthFieldBytes + kv.keyBytes, putBytes(kv)];
  const maxInlineData = Math.max(0, ...lengths.filter((bytes) => bytes <= inlineBytes));
  const cap = { maxSendWr: txDepth, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData };
  const qp = await createQp(pd, { sendCq, recvCq: answerCq, qpType: IBV_QPT_UC, cap });
  const steps = { ...ucSteps(endpoint, mtuBytes), beforeReady: () => {} };
  const { note: region } = await connectQps<Region>(endpoint, [qp], `kv.${thread}`, null, steps);
  if (thread === 0)
    for (let server = 1; server < kv.servers; server++)
      await program.exchange.put(`kv.region.${server}`, region.address);
  const buffer = await createBuffer(endpoint, kv.servers * kv.window * slotBytes(kv));
  const received = await createBuffer(endpoint, rxDepth * answerBytes(kv, grhBytes));
  const receives = Array.from({ length: rxDepth }, (_, at) => receiveOf(args, at, received));
  const answerQp = await createQp(pd, {
    sendCq,
    recvCq: answerCq,
    qpType: IBV_QPT_UD,
    cap: { maxSendWr: 1, maxRecvWr: rxDepth, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 },
  });
  await initUd(answerQp);
  for (const receive of receives) postReceive(answerQp, receive);
  await connectUd(answerQp, program.random.below(1 << 24));
  const announced: AnswerQp = { client: thread, ...announcedOf(endpoint.own), qpNum: answerQp.qpNum };
  for (let server = 0; server < kv.servers; server++)
    await program.exchange.put(`kv.answers.${server}`, announced);
  const requests = new SparselySignalled(qp, new CompletionPoller(sendCq), txDepth, cqModeration);
  const servers = Array.from({ length: kv.servers }, (_, number) => askedServer(args, number));
  return { requests, answers: new CompletionPoller(answerCq), answerQp, receives, servers, region, buffer };
}

const askedServer = ({ kv }: KvArgs, number: number): AskedServer => ({
  number,
  asked: Array.from({ length: kv.window }, () => ({ item: 0, isGet: true, ownStamp: 0, startPs: 0 })),
  askedCount: 0,
  answeredCount: 0,
});

const receiveOf = ({ kv }: KvArgs, number: number, { address, region }: RcBuffer): IbvRecvWr => ({
  wrId: number,
  sgList: [
    {
      addr: address + number * answerBytes(kv, grhBytes),
      length: grhBytes + kv.valueBytes,
      lkey: region.lkey,
    },
  ],
  numSge: 1,
});
