/**
 * Two TCP engines of cards and a real Ethernet cable between them, each with a host memory for contexts and a command processor's calls. The
 * rings, the RDMA side and the event queues are stand-ins that note what reaches them.
 */
import { CommandStatus } from '../../../../abi/command-status.ts';
import { commands } from '../../../../abi/commands.ts';
import { CloseTcp, OpenTcp, streamMailbox, TcpEvent, tcpContext } from '../../../../abi/tcp-connection.ts';
import { viewOf } from '../../../../base/bytes.ts';
import type { Decoded, Initial } from '../../../../base/layout.ts';
import { defaultsOf } from '../../../../base/parameter.ts';
import {
  type BlockAccount,
  ChannelReader,
  ChannelWriter,
  type ClockDomain,
  connectBlocks,
  LogicalProcess,
  SingleRunner,
} from '../../../../sim/index.ts';
import {
  type EthernetConfig,
  EthernetPort,
  ethernetChannelBytes,
  ethernetParameters,
  withTag,
} from '../../../../wire/index.ts';
import { CommandRejection, type CommandRequest, type Steps } from '../../commands/command-steps.ts';
import { hcaParameters } from '../../parameters.ts';
import { EthernetSide } from '../../port/ethernet-side.ts';
import { BumpAllocator } from '../../testing/control-bench.ts';
import { MemoryDma, SparseMemory } from '../../testing/memory-dma.ts';
import {
  closeTcp,
  type Mailboxes,
  openTcp,
  queryTcp,
  receiveTcp,
  sendTcp,
  type TcpCommand,
} from '../commands/tcp-commands.ts';
import { type IwarpConfig, iwarpParameters } from '../iwarp-parameters.ts';
import { makeTcpBlocks, type TcpBlocks, tcpWires } from '../tcp/tcp-blocks.ts';
import type { TcpReport } from '../tcp/tcp-events.ts';
import { TestStream } from './test-stream.ts';

const contextBase = 0x10_0000;
const sramBytes = 4 << 20;
const psPerUs = 1_000_000;
const connectionsMax = 64;

/**
 * The cable's treatment of a frame. A late frame follows the next one of its direction; a damaged one has one wrong bit
 * in its last byte.
 */
export type Fate = 'lost' | 'doubled' | 'damaged' | 'late' | 'carried';

export interface TcpBenchOptions {
  readonly iwarp?: Partial<IwarpConfig>;
  readonly ethernet?: Partial<EthernetConfig>;
}

const macOf = (node: number): number => 0x0002_c912_3400 + node;
export const macBytesOf = (node: number): Uint8Array => Uint8Array.of(0, 2, 0xc9, 0x12, 0x34, node);
export const ipv4Of = (node: number): Uint8Array =>
  Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, node);
export const ipv6Of = (node: number): Uint8Array =>
  Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, node);

export class TcpNode {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly port: EthernetPort;
  readonly side: EthernetSide;
  readonly memory = new SparseMemory();
  readonly dma: MemoryDma;
  readonly blocks: TcpBlocks;
  readonly reports: TcpReport[] = [];
  /** Frames that the rings got, and frames that left, without FCS. */
  readonly ringFrames: Uint8Array[] = [];
  readonly sent: { readonly atPs: number; readonly bytes: Uint8Array }[] = [];
  readonly address = { isActive: true };
  hasEventRoom = true;
  /** Fate of a frame that leaves, counted from 1. */
  fateOf: (ordinal: number, bytes: Uint8Array) => Fate = () => 'carried';
  /** A frame of a ring waits for the cable. */
  waitsForWire = false;
  readonly number: number;
  readonly #actions: (() => void)[] = [];
  readonly #stage: number;

  constructor(number: number, out: SharedArrayBuffer, into: SharedArrayBuffer, options: TcpBenchOptions) {
    this.number = number;
    this.lp = new LogicalProcess(`node ${number}`);
    const { lp } = this;
    this.domain = lp.addClockDomain(427);
    const { domain } = this;
    const ethernet = ethernetConfigOf(options);
    this.port = new EthernetPort({
      ...{ lp, config: ethernet, seed: 1 },
      ...{ writer: new ChannelWriter(out), reader: new ChannelReader(into) },
    });
    this.side = new EthernetSide({ mac: macOf(number), ...ethernet, errors: this.port });
    const sram = new BumpAllocator(sramBytes);
    this.dma = new MemoryDma(this.memory, domain, sram.bytes, 10);
    const contextMemory = {
      mappedPageCount: 0,
      keyCount: 0,
      contextAddress: (_kind: string, context: number) => contextBase + context * 256,
      keyAddress: () => -1,
      translationAddress: () => -1,
    };
    this.blocks = makeTcpBlocks({
      ...{ lp, domain, ethernet: { port: this.port, side: this.side }, address: this.address, sram },
      ...{ contextMemory, dmaRead: this.dma, dmaWrite: this.dma, connectionsMax },
      config: defaultsOf(hcaParameters),
      iwarp: { ...defaultsOf(iwarpParameters), ...options.iwarp },
    });
    const { blocks, port } = this;
    connectBlocks(
      blocks,
      tcpWires(blocks, {
        eventQueues: this,
        frameTransmitter: this,
        frameReceiver: { frameArrived: (slot) => this.#ringFrame(slot) },
      }),
    );
    port.connect({
      receiver: blocks.tcpEngine,
      sender: blocks.tcpTransmitter,
      link: { linkChanged: () => undefined },
    });
    this.#interceptSent();
    this.#stage = domain.addStage(this.#perform, this);
    blocks.tcpControl.place(connectionsMax);
    domain.addEdgeKeeper(this);
  }

  /** Begins a new epoch as the data path does. */
  rebase(_ps: number, cycles: number): void {
    for (const account of this.accounts) account.rebase(cycles);
    for (const block of Object.values(this.blocks)) if ('rebase' in block) block.rebase(cycles);
  }

  /** Does something at an edge. */
  act(action: () => void): void {
    this.#actions.push(action);
    this.domain.wakeAfter(this.#stage, this.lp.nowPs);
  }

  // ---- event queues ----

  canPost(): boolean {
    return this.hasEventRoom;
  }

  postTcpEvent(report: TcpReport): void {
    this.reports.push({ ...report });
  }

  /** The events of a connection, by name. */
  eventsOf(connection: number): string[] {
    return this.reports
      .filter((report) => report.connection === connection)
      .map(({ event }) => Object.entries(TcpEvent).find(([, value]) => value === event)![0]);
  }

  // ---- frames ----

  #ringFrame(slot: number): void {
    const at = this.port.frameStart(slot);
    this.ringFrames.push(this.port.rxBytes.slice(at, at + this.port.frameBytes(slot)));
    this.port.consume(slot);
  }

  /** Notes each frame that leaves, and has it meet its fate. */
  #interceptSent(): void {
    const { port } = this;
    const send = port.send.bind(port);
    let late: (() => void) | undefined;
    port.send = (source, at, lengthBytes, fromPs, isSentAgain) => {
      const bytes = source.slice(at, at + lengthBytes);
      this.sent.push({ atPs: this.lp.nowPs, bytes });
      const fate = this.fateOf(this.sent.length, bytes);
      const again = late;
      late = undefined;
      if (fate === 'late' && again === undefined) {
        late = () => send(bytes, 0, lengthBytes, this.lp.nowPs, isSentAgain);
        return;
      }
      const carried = bytes.slice();
      if (fate === 'damaged') carried[lengthBytes - 1]! ^= 4;
      if (fate !== 'lost') send(carried, 0, lengthBytes, fromPs, isSentAgain);
      if (fate === 'doubled') send(carried, 0, lengthBytes, fromPs, isSentAgain);
      again?.();
    };
  }

  #perform(cycle: number): void {
    this.#actions.shift()?.();
    if (this.#actions.length > 0) this.domain.wake(this.#stage, cycle + 1);
  }

  get accounts(): readonly BlockAccount[] {
    const { tcpEvents, tcpTransmitter, tcpEngine } = this.blocks;
    return [tcpEvents, tcpTransmitter, tcpEngine].map(({ account }) => account);
  }
}

const ethernetConfigOf = ({ ethernet }: TcpBenchOptions): EthernetConfig =>
  withTag({ ...defaultsOf(ethernetParameters), trainingUs: 0, ...ethernet });

export interface Outcome {
  readonly status: number;
  readonly out: number;
  readonly box: Uint8Array;
}

export class TcpBench {
  readonly a: TcpNode;
  readonly b: TcpNode;
  readonly #runner: SingleRunner;

  private constructor(options: TcpBenchOptions) {
    const bytes = ethernetChannelBytes(ethernetConfigOf(options));
    const [out, back] = [new SharedArrayBuffer(bytes), new SharedArrayBuffer(bytes)];
    this.a = new TcpNode(1, out, back, options);
    this.b = new TcpNode(2, back, out, options);
    this.#runner = new SingleRunner([this.a.lp, this.b.lp]);
  }

  /** A bench whose cable is up. */
  static async open(options: TcpBenchOptions = {}): Promise<TcpBench> {
    const bench = new TcpBench(options);
    for (const { port } of [bench.a, bench.b]) port.setEnabled(true);
    await bench.until(() => bench.a.port.isUp && bench.b.port.isUp);
    return bench;
  }

  get nowPs(): number {
    return this.#runner.nowPs;
  }

  async run(durationUs: number): Promise<void> {
    await this.#runner.runTo(this.#runner.nowPs + durationUs * psPerUs);
  }

  /** @throws Error when it is not done within `limitUs` */
  async until(isDone: () => boolean, limitUs = 20_000_000): Promise<void> {
    for (let us = 0, step = 1; us < limitUs; us += step, step = Math.min(step * 1.2, 100_000)) {
      if (isDone()) return;
      await this.run(Math.ceil(step));
    }
    if (!isDone())
      throw new Error(`not done within ${limitUs} us: ${JSON.stringify(this.progress, null, 1)}`);
  }

  get progress(): unknown {
    return [this.a, this.b].map(({ blocks, reports, sent }) => ({
      engine: blocks.tcpEngine.inspect(),
      counters: blocks.tcpEngine.counters,
      reports,
      sent: sent.length,
    }));
  }

  beginEpoch(ps: number): void {
    this.#runner.rebase(ps);
  }

  /** Runs a command at an edge, without the cycles of a command processor. */
  async command(
    node: TcpNode,
    command: TcpCommand,
    inputModifier: number,
    opcodeModifier = 0,
    inBox: Uint8Array = new Uint8Array(0),
    inParamLow = 0,
  ): Promise<Outcome> {
    let outcome: Outcome | undefined;
    node.act(() => {
      outcome = execute(node, command, { inputModifier, opcodeModifier, inParamLow }, inBox);
    });
    await this.until(() => outcome !== undefined);
    return outcome!;
  }

  async listen(node: TcpNode, changes: Initial<typeof tcpContext> = {}): Promise<Outcome> {
    return this.command(
      node,
      openTcp,
      0,
      OpenTcp.LISTEN,
      tcpContext.encode({ ...standing, localPort: 7, ...changes }),
    );
  }

  async connect(node: TcpNode, changes: Initial<typeof tcpContext> = {}): Promise<Outcome> {
    const peer = 3 - node.number;
    const isIpv6 = changes.isIpv6 === 1;
    const context = {
      ...standing,
      backlog: 0,
      cookie: 0x1111,
      remoteMac: macBytesOf(peer),
      localAddress: isIpv6 ? ipv6Of(node.number) : ipv4Of(node.number),
      remoteAddress: isIpv6 ? ipv6Of(peer) : ipv4Of(peer),
      localPort: 0x8000,
      remotePort: 7,
      ...changes,
    };
    return this.command(node, openTcp, 0, OpenTcp.CONNECT, tcpContext.encode(context));
  }

  /** Makes the connection one of FPDUs at a node. */
  async attach(node: TcpNode, connection: number, qpn = 0x40): Promise<TestStream> {
    const { tcpStreams } = node.blocks;
    const stream = new TestStream(tcpStreams, connection, node.number);
    let isAttached: boolean | undefined;
    node.act(() => {
      isAttached = tcpStreams.attach(connection, qpn, stream, node.domain.cycle);
    });
    await this.until(() => isAttached !== undefined);
    if (isAttached !== true) throw new Error(`connection ${connection} takes no stream`);
    return stream;
  }

  /** Has a stream send segments of these lengths. */
  start(node: TcpNode, stream: TestStream, lengths: readonly number[]): void {
    node.act(() => stream.start(lengths, node.domain.cycle));
  }

  /** A connection from a to b. @returns its numbers at both */
  async connected(changes: Initial<typeof tcpContext> = {}): Promise<{ client: number; server: number }> {
    if (this.b.blocks.tcpEngine.inspect()['connections'] === 0)
      await this.listen(this.b, { ...changes, isIpv6: 0, localPort: 7, cookie: 0x2222 });
    const { out: client } = await this.connect(this.a, changes);
    const known = this.b.reports.length;
    const isAccepted = (): boolean =>
      this.b.reports.slice(known).some(({ event }) => event === TcpEvent.ACCEPTED) &&
      this.a.eventsOf(client).includes('ESTABLISHED');
    await this.until(isAccepted);
    const accepted = this.b.reports.slice(known).find(({ event }) => event === TcpEvent.ACCEPTED)!;
    return { client, server: accepted.connection };
  }

  send(node: TcpNode, connection: number, bytes: Uint8Array): Promise<Outcome> {
    const box = streamMailbox.encode({ lengthBytes: bytes.length, bytes: padded(bytes) });
    return this.command(node, sendTcp, connection, 0, box);
  }

  async receive(node: TcpNode, connection: number): Promise<Uint8Array> {
    const { status, box } = await this.command(node, receiveTcp, connection);
    if (status !== CommandStatus.OK) throw new Error(`RECEIVE_TCP ended with status ${status}`);
    const lengthBytes = streamMailbox.fields.lengthBytes.get(viewOf(box), 0);
    return box.slice(8, 8 + lengthBytes);
  }

  /** Receives until this many bytes have arrived. */
  async receiveAll(node: TcpNode, connection: number, lengthBytes: number): Promise<Uint8Array> {
    const bytes: number[] = [];
    for (let tries = 0; bytes.length < lengthBytes && tries < 10_000; tries++) {
      bytes.push(...(await this.receive(node, connection)));
      if (bytes.length < lengthBytes) await this.run(tries < 1000 ? 10 : 10_000);
    }
    return Uint8Array.from(bytes);
  }

  close(node: TcpNode, connection: number, form: CloseTcp = CloseTcp.ORDERLY): Promise<Outcome> {
    return this.command(node, closeTcp, connection, form);
  }

  terminate(node: TcpNode, connection: number, error: number): Promise<Outcome> {
    return this.command(node, closeTcp, connection, CloseTcp.TERMINATE, undefined, error);
  }

  async query(node: TcpNode, connection: number): Promise<Decoded<typeof tcpContext>> {
    return tcpContext.decode((await this.command(node, queryTcp, connection)).box);
  }

  /** Every cycle of every block has one owner. @returns what differs, by account */
  imbalances(): string[] {
    return [this.a, this.b].flatMap(({ accounts, domain, lp }) => {
      const elapsed = domain.clock.cyclesElapsed(lp.nowPs) + domain.epochCycles;
      return accounts.flatMap((account) => {
        account.close(domain.clock.cyclesElapsed(lp.nowPs));
        const stalled = account.stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
        const sum = account.busyCycles + stalled + account.idleCycles;
        return sum === elapsed && account.overlapCount === 0 ? [] : [`${account.name}: ${sum} of ${elapsed}`];
      });
    });
  }
}

const standing = {
  port: 1,
  hopLimit: 64,
  maxSegmentBytes: 1440,
  receiveWindowBytes: 256 * 1024,
  receiveScale: 3,
  synRetries: 6,
  dataRetries: 15,
  backlog: 4,
} as const;

function padded(bytes: Uint8Array): Uint8Array {
  const all = new Uint8Array(1024);
  all.set(bytes.subarray(0, 1024));
  return all;
}

/** The steps of a command, whose mailboxes are at hand. */
function execute(
  node: TcpNode,
  command: TcpCommand,
  modifiers: Pick<CommandRequest, 'inputModifier' | 'opcodeModifier' | 'inParamLow'>,
  inBox: Uint8Array,
): Outcome {
  let box = new Uint8Array(0);
  const mailboxes: Mailboxes = {
    readIn: (lengthBytes) => {
      const bytes = new Uint8Array(lengthBytes);
      bytes.set(inBox.subarray(0, lengthBytes));
      return atOnce(bytes);
    },
    writeOut: (bytes) => {
      box = bytes.slice();
      return atOnce(undefined);
    },
  };
  const request: CommandRequest = {
    ...{
      opcode: commands.OPEN_TCP.opcode,
      inParamHigh: 0,
      outParamHigh: 0,
      outParamLow: 0,
      token: 0,
      byEvent: false,
    },
    ...modifiers,
  };
  const { domain, blocks } = node;
  try {
    const started = command({ tcp: blocks.tcpControl, portCount: 1, domain }, request, mailboxes);
    const result =
      started !== undefined && 'next' in started ? started.next(new Uint8Array(0)).value : started;
    const out = result !== undefined && typeof result === 'object' && 'low' in result ? result.low : 0;
    return { status: CommandStatus.OK, out, box };
  } catch (error) {
    if (error instanceof CommandRejection) return { status: error.status, out: 0, box };
    throw error;
  }
}

/** Steps that never wait. */
function* atOnce<T>(value: T): Steps<T> {
  yield* [];
  return value;
}
