/**
 * The out-of-band exchange: programs of different hosts send each other addresses and keys before RDMA can begin, as
 * real programs do over a TCP socket. It carries small JSON values under a name; each receiving host has one mailbox
 * per name.
 *
 *     put(name, value) ── latency ──► mailbox of `name` at each peer in the topology ──► take(name)
 *
 * Values travel over channels between hosts, so that they arrive at the same simulated instant in every partition. The
 * latency is the only cost; no cycles are charged.
 */
import { ConfigurationError, InvariantError, nsToPs } from '../../base/index.ts';
import type { CoreThread, Host, Signal } from '../../host/index.ts';
import {
  ChannelReader,
  ChannelWriter,
  type LogicalProcess,
  RECORD_HEADER_BYTES,
  RECORD_WORDS,
} from '../../sim/index.ts';
import type { MachineConfig } from '../profile/index.ts';
import { type JsonLike, type JsonValue, jsonCopy } from './json-value.ts';

/** Greatest length of name and value together, as UTF-8 JSON. */
const exchangeValueBytesMax = 8192;

const VALUE = 1;

/** The exchange as one program uses it. */
export interface Exchange {
  /** Latency from {@link put} to the mailbox. */
  readonly latencyPs: number;
  /**
   * Sends a value to the mailbox `name` of other hosts.
   * @param to their numbers; default: the hosts at the other ends of this host's cables
   * @throws ConfigurationError for a number that no other host has
   */
  put(name: string, value: JsonLike, to?: readonly number[]): Promise<void>;
  /** Dequeues the oldest value of the own mailbox `name`; waits if the mailbox is empty. The sending program defines its type. */
  take<Value = JsonValue>(name: string): Promise<Value>;
  /**
   * Dequeues the oldest value of the own mailbox `name`, or returns undefined if it is empty; for programs that do
   * other work in the meantime.
   */
  poll<Value = JsonValue>(name: string): Promise<Value | undefined>;
}

interface Mailbox {
  readonly values: JsonValue[];
  readonly arrived: Signal;
}

/** The exchange's end at one host. */
export class ExchangePort {
  /** Called with each arriving value, before any program that waits for it. */
  onArrival: ((name: string) => void) | undefined;
  readonly #lp: LogicalProcess;
  readonly #host: Host;
  readonly #latencyPs: number;
  readonly #peers: readonly number[];
  /** Writers by the number of the receiving host. */
  readonly #writers: ReadonlyMap<number, ChannelWriter>;
  readonly #mailboxes = new Map<string, Mailbox>();

  constructor(
    lp: LogicalProcess,
    host: Host,
    config: MachineConfig,
    peers: readonly number[],
    inbound: readonly SharedArrayBuffer[],
    outbound: ReadonlyMap<number, SharedArrayBuffer>,
  ) {
    this.#lp = lp;
    this.#host = host;
    this.#peers = peers;
    this.#latencyPs = nsToPs(config.machine.exchangeLatencyNs);
    for (const buffer of inbound) this.#connect(new ChannelReader(buffer));
    this.#writers = new Map([...outbound].map(([node, buffer]) => [node, new ChannelWriter(buffer)]));
    for (const writer of this.#writers.values()) lp.addOutbound(writer);
  }

  /** The exchange of the program that runs on `cpu`. */
  of(cpu: CoreThread): Exchange {
    return {
      latencyPs: this.#latencyPs,
      put: (name, value, to) => this.#put(cpu, name, value, to ?? this.#peers),
      take: <Value>(name: string) => this.#take(cpu, name) as Promise<Value>,
      poll: async <Value>(name: string) => {
        await cpu.settle();
        return this.#mailbox(name).values.shift() as Value | undefined;
      },
    };
  }

  async #put(cpu: CoreThread, name: string, value: JsonLike, to: readonly number[]): Promise<void> {
    await cpu.settle();
    if (!Array.isArray(to) || new Set(to).size !== to.length)
      throw new ConfigurationError(`receivers of exchange ${name}`, to, 'a list of hosts, each once');
    const bytes = bytesOf(name, value);
    const writers = to.map((node) => this.#writerTo(name, node));
    for (const writer of writers) appendValue(writer, this.#lp.nowPs + this.#latencyPs, bytes);
  }

  #writerTo(name: string, node: number): ChannelWriter {
    const writer = this.#writers.get(node);
    if (writer !== undefined) return writer;
    const others = [...this.#writers.keys()].join(', ');
    throw new ConfigurationError(`receiver of exchange ${name}`, node, `another host: ${others}`);
  }

  async #take(cpu: CoreThread, name: string): Promise<JsonValue> {
    await cpu.settle();
    const mailbox = this.#mailbox(name);
    for (;;) {
      const value = mailbox.values.shift();
      if (value !== undefined) return value;
      cpu.waitsIn(() => `exchange.take for '${name}'`);
      await mailbox.arrived.wait(cpu);
      cpu.waitsIn(undefined);
    }
  }

  #mailbox(name: string): Mailbox {
    let mailbox = this.#mailboxes.get(name);
    if (mailbox === undefined) {
      mailbox = { values: [], arrived: this.#host.newSignal() };
      this.#mailboxes.set(name, mailbox);
    }
    return mailbox;
  }

  #connect(reader: ChannelReader): void {
    this.#lp.addInbound(reader, this.#latencyPs, (offset) => {
      const [name, value] = valueAt(reader, offset);
      this.onArrival?.(name);
      const mailbox = this.#mailbox(name);
      mailbox.values.push(value);
      mailbox.arrived.raise();
    });
  }
}

/** Receives each value, in the order sent. */
export type ValueTaken = (name: string, value: JsonValue) => void;

/** The exchange's end without a simulated host: passes received values to a callback and sends values from outside simulated time. */
export class ExchangeEnd {
  readonly #lp: LogicalProcess;
  readonly #latencyPs: number;
  readonly #writer: ChannelWriter;
  /** Values sent so far. */
  putCount = 0;

  constructor(
    lp: LogicalProcess,
    config: MachineConfig,
    inbound: SharedArrayBuffer,
    outbound: SharedArrayBuffer,
    taken: ValueTaken,
  ) {
    this.#lp = lp;
    this.#latencyPs = nsToPs(config.machine.exchangeLatencyNs);
    const reader = new ChannelReader(inbound);
    lp.addInbound(reader, this.#latencyPs, (offset) => taken(...valueAt(reader, offset)));
    this.#writer = new ChannelWriter(outbound);
    lp.addOutbound(this.#writer);
  }

  /**
   * Sends a value between two runs; the runner must be notified.
   * @throws ConfigurationError if it is too long
   */
  put(name: string, value: JsonValue): void {
    appendValue(this.#writer, this.#lp.nowPs + this.#latencyPs, bytesOf(name, value));
    this.putCount++;
  }
}

/** @throws ConfigurationError for a value that the exchange does not carry */
export function checkValue(name: string, value: JsonValue): void {
  bytesOf(name, value);
}

/** @throws ConfigurationError if JSON cannot represent the value, or name and value are too long */
function bytesOf(name: string, value: JsonLike): Uint8Array {
  if (typeof name !== 'string') throw new ConfigurationError('name of an exchanged value', name, 'a text');
  const bytes = new TextEncoder().encode(JSON.stringify([name, jsonCopy(`exchange ${name}`, value)]));
  if (bytes.length <= exchangeValueBytesMax) return bytes;
  const range = `at most ${exchangeValueBytesMax} bytes of JSON`;
  throw new ConfigurationError(`exchange ${name}`, `${bytes.length} bytes`, range);
}

function appendValue(writer: ChannelWriter, atPs: number, bytes: Uint8Array): void {
  const offset = writer.append(atPs, VALUE, bytes.length);
  writer.words[(offset >> 2) + RECORD_WORDS] = bytes.length;
  writer.bytes.set(bytes, offset + RECORD_HEADER_BYTES);
}

/** Returns the value of a record and releases the record. */
function valueAt(reader: ChannelReader, offset: number): [string, JsonValue] {
  const length = reader.words[(offset >> 2) + RECORD_WORDS]!;
  const start = offset + RECORD_HEADER_BYTES;
  const value = valueIn(reader.bytes.slice(start, start + length));
  reader.release(offset);
  return value;
}

function valueIn(bytes: Uint8Array): [string, JsonValue] {
  const parsed = JSON.parse(new TextDecoder().decode(bytes)) as unknown;
  if (!Array.isArray(parsed) || typeof parsed[0] !== 'string')
    throw new InvariantError('exchange record', JSON.stringify(parsed), '[name, value]');
  return [parsed[0], parsed[1] as JsonValue];
}
