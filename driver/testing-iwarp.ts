/** The specs' device with iWARP: its TCP connections are what a spec says, and its events are raised by the spec. */
import { ExtendedFlag } from '../abi/capability-flags.ts';
import { CommandStatus } from '../abi/command-status.ts';
import { EventType } from '../abi/eqe.ts';
import { PortType, queryPort } from '../abi/ports.ts';
import { queryDevCap } from '../abi/query-dev-cap.ts';
import { streamMailbox, TcpEvent, tcpContext, tcpEqe } from '../abi/tcp-connection.ts';
import { viewOf } from '../base/bytes.ts';
import type { Decoded } from '../base/layout.ts';
import type { DriverConfig } from './parameters.ts';
import type { CmEventRecord, KernelEventChannel, RdmaCmEventType } from './rdma-cm.ts';
import type { Answer, SeenCommand } from './testing.ts';
import { goldenDevice } from './testing-answers.ts';
import { initMask, TestContext, toInit } from './testing-context.ts';

const mac = 0x0002_c912_3456;
const peerMac = 0x0002_c965_4321;
const neighbours = [
  { address: '10.0.0.1', portGuid: 1n, mac },
  { address: '10.0.0.2', portGuid: 2n, mac: peerMac },
];
const peerPort = 0x9000;
/** `::ffff:` and an IPv4 address. */
const mapped = (last: number): Uint8Array =>
  Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last);

export class IwarpBench {
  /** Bytes that SEND_TCP brought, by connection. */
  readonly sent: { readonly connection: number; readonly bytes: Uint8Array }[] = [];
  /** Bytes that RECEIVE_TCP takes, by connection. */
  readonly readable = new Map<number, Uint8Array>();
  /** Commands on connections, in words. */
  readonly closed: string[] = [];
  /** Answer of the next OPEN_TCP, for a spec that wants it refused. */
  openStatus = 0;
  /** Answers of the next SEND_TCPs, for a spec that wants them refused. */
  sendStatuses: number[] = [];
  opened!: TestContext;
  channel!: KernelEventChannel;
  #lastConnection = 0x10;
  /** Cookies of listeners and connections, by number. */
  readonly #cookies = new Map<number, number>();

  static async open(changed: Partial<DriverConfig> = {}): Promise<IwarpBench> {
    const bench = new IwarpBench();
    bench.opened = await TestContext.openWith((command) => bench.#answer(command), neighbours, changed);
    bench.channel = await bench.opened.driver.openEventChannel(bench.opened.machine.cpu);
    return bench;
  }

  /** A QP in INIT without rights, as rdma_create_qp takes it there. @returns its number */
  async qp(): Promise<{ readonly handle: number; readonly qpn: number }> {
    const { context, machine } = this.opened;
    const created = await this.opened.createQp();
    await context.modifyQp(machine.cpu, created.handle, toInit, initMask);
    return created;
  }

  /** The card tells something of a connection. */
  async notify(subtype: TcpEvent, connection = this.#lastConnection): Promise<void> {
    await this.#raise({ subtype, connection, cookie: this.#cookies.get(connection)! });
  }

  /** A peer opens a connection to the listener that was opened last. @returns its number */
  async accept(): Promise<number> {
    const listener = this.#lastConnection;
    const connection = ++this.#lastConnection;
    const cookie = this.#cookies.get(listener)!;
    this.#cookies.set(connection, cookie);
    await this.#raise({ subtype: TcpEvent.ACCEPTED, connection, listener, cookie });
    return connection;
  }

  /** The peer sends bytes. */
  async deliver(bytes: Uint8Array, connection = this.#lastConnection): Promise<void> {
    this.readable.set(connection, bytes);
    await this.notify(TcpEvent.READABLE, connection);
  }

  /** The events that wait, by number. */
  async events(): Promise<CmEventRecord[]> {
    const found: CmEventRecord[] = [];
    for (;;) {
      const event = await this.channel.getEvent(this.opened.machine.cpu, 0);
      if (event === undefined) return found;
      found.push(event);
    }
  }

  /** The next event is of this kind. */
  async expectEvent(kind: RdmaCmEventType): Promise<CmEventRecord> {
    const event = await this.channel.getEvent(this.opened.machine.cpu, 0);
    if (event?.event !== kind) throw new Error(`event ${event?.event}, expected ${kind}`);
    return event;
  }

  /** The values of the last OPEN_TCP. */
  get opening(): Decoded<typeof tcpContext> {
    return tcpContext.decode(this.opened.machine.last('OPEN_TCP').input);
  }

  async #raise(values: {
    subtype: TcpEvent;
    connection: number;
    listener?: number;
    cookie: number;
  }): Promise<void> {
    const { machine } = this.opened;
    await machine.raise(machine.asyncEq, (at, owner) =>
      tcpEqe.encodeInto({ type: EventType.TCP, ...values, owner }, machine.memory, at),
    );
    await settled();
  }

  #answer(command: SeenCommand): Answer | undefined {
    const answer = goldenDevice(command);
    switch (command.name) {
      case 'QUERY_PORT': {
        const port = { linkUp: 1, supportedTypes: PortType.ETHERNET, maxEthernetMtu: 1500, mac };
        return { output: queryPort.encode({ ...port, ethernetSpeed: 0x40, logGids: 7, logPkeys: 7 }) };
      }
      case 'QUERY_DEV_CAP': {
        const limits = queryDevCap.decode(answer!.output!);
        const extendedFlags = (limits.extendedFlags | (2 ** ExtendedFlag.IWARP)) >>> 0;
        const ours = { extendedFlags, auxcEntryBytes: 256, logMaxTcpConnections: 12, ports: 1 };
        return { output: queryDevCap.encode({ ...limits, ...ours }) };
      }
      case 'OPEN_TCP':
        if (this.openStatus !== 0) return { status: this.openStatus };
        this.#cookies.set(++this.#lastConnection, tcpContext.decode(command.input).cookie);
        return { immediate: BigInt(this.#lastConnection) };
      case 'SEND_TCP': {
        const status = this.sendStatuses.shift() ?? CommandStatus.OK;
        if (status !== CommandStatus.OK) return { status };
        const lengthBytes = streamMailbox.fields.lengthBytes.get(viewOf(command.input), 0);
        this.sent.push({ connection: command.inputModifier, bytes: command.input.slice(8, 8 + lengthBytes) });
        return {};
      }
      case 'RECEIVE_TCP': {
        const bytes = this.readable.get(command.inputModifier) ?? new Uint8Array(0);
        this.readable.delete(command.inputModifier);
        const output = new Uint8Array(streamMailbox.sizeBytes);
        streamMailbox.fields.lengthBytes.set(viewOf(output), 0, bytes.length);
        output.set(bytes, 8);
        return { output };
      }
      case 'QUERY_TCP': {
        const addresses = { localAddress: mapped(1), remoteAddress: mapped(2) };
        return { output: tcpContext.encode({ ...addresses, localPort: 7, remotePort: peerPort }) };
      }
      case 'CLOSE_TCP':
        this.closed.push(`${command.inputModifier} by ${command.opcodeModifier}: ${command.inParam}`);
        return {};
      default:
        return answer;
    }
  }
}

/** Lets the kernel's threads run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
