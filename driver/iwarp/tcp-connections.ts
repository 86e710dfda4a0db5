/**
 * TCP connections of the card: the commands that open, use and close them, and the events that they send.
 *
 *     open ──OPEN_TCP──► card           card ──EQE──► event router ──► sink of the connection
 *
 * An event may arrive before the command that opened its connection has returned: until then the cookie finds the sink.
 * Source: reference/iwarp-interface.md.
 */
import {
  CloseTcp,
  OpenTcp,
  streamBytesMax,
  streamMailbox,
  TcpEvent,
  tcpContext,
  tcpEqe,
} from '../../abi/index.ts';
import { type Decoded, type Initial, viewOf } from '../../base/index.ts';
import type { Device } from '../device.ts';
import type { Cpu } from '../platform.ts';

export type TcpOpening = Omit<Initial<typeof tcpContext>, 'cookie'>;

/** Takes the events of a connection. It must not wait. */
export interface TcpSink {
  tcpEvent(event: TcpEvent): void;
}

/** Takes the connections of a listener. It must not wait. */
export interface TcpListener {
  /** @returns the sink of the new connection */
  accepted(connection: number): TcpSink;
}

/** Parts of the device that its connections use. */
export type TcpDevice = Pick<Device, 'commands' | 'router' | 'platform'>;

export class TcpConnections {
  readonly #device: TcpDevice;
  readonly #opening = new Map<number, TcpSink>();
  readonly #sinks = new Map<number, TcpSink>();
  readonly #listeners = new Map<number, TcpListener>();
  readonly #orphaned: (connection: number) => void;
  #lastCookie = 0;
  /** Events of connections that have no sink any longer. */
  droppedEvents = 0;

  /**
   * @param orphaned called with a connection whose listener was destroyed: the caller must close it, without waiting
   */
  constructor(device: TcpDevice, orphaned: (connection: number) => void) {
    this.#device = device;
    this.#orphaned = orphaned;
    device.router.tcpEvent = (address) => this.#event(address);
  }

  /** Sends a SYN; ESTABLISHED, RESET or TIMED_OUT follows. @returns its number @throws CommandFailure */
  async connect(cpu: Cpu, opening: TcpOpening, sink: TcpSink): Promise<number> {
    const cookie = this.#nextCookie();
    this.#opening.set(cookie, sink);
    try {
      const connection = await this.#open(cpu, { ...opening, cookie }, OpenTcp.CONNECT);
      this.#sinks.set(connection, sink);
      return connection;
    } finally {
      this.#opening.delete(cookie);
    }
  }

  /** Listens at a port. @returns its number @throws CommandFailure */
  async listen(cpu: Cpu, opening: TcpOpening, listener: TcpListener): Promise<number> {
    const cookie = this.#nextCookie();
    this.#listeners.set(cookie, listener);
    try {
      return await this.#open(cpu, { ...opening, cookie }, OpenTcp.LISTEN);
    } catch (error) {
      this.#listeners.delete(cookie);
      throw error;
    }
  }

  /** Sends bytes of a stream that belongs to no QP: at most 1,024. @throws CommandFailure */
  async send(cpu: Cpu, connection: number, bytes: Uint8Array): Promise<void> {
    const { commands } = this.#device;
    await commands.executeWithMailbox(cpu, 'SEND_TCP', { inputModifier: connection }, (memory, at) => {
      streamMailbox.fields.lengthBytes.set(viewOf(memory), at, bytes.length);
      memory.set(bytes, at + streamBytesAt);
    });
  }

  /** Takes all bytes that have arrived. @throws CommandFailure */
  async receive(cpu: Cpu, connection: number): Promise<Uint8Array> {
    const { commands } = this.#device;
    const parts: Uint8Array[] = [];
    for (let isFull = true; isFull; ) {
      const part = await commands.query(cpu, 'RECEIVE_TCP', { inputModifier: connection }, (memory, at) => {
        const lengthBytes = streamMailbox.fields.lengthBytes.get(viewOf(memory), at);
        return memory.slice(at + streamBytesAt, at + streamBytesAt + lengthBytes);
      });
      parts.push(part);
      isFull = part.length === streamBytesMax;
    }
    return Uint8Array.from(parts.flatMap((part) => [...part]));
  }

  /** The context with its numbers as they are now. @throws CommandFailure */
  query(cpu: Cpu, connection: number): Promise<Decoded<typeof tcpContext>> {
    return this.#device.commands.query(cpu, 'QUERY_TCP', { inputModifier: connection }, (bytes, at) =>
      tcpContext.decode(bytes, at),
    );
  }

  /** Gives a connection a sink. */
  adopt(connection: number, sink: TcpSink): void {
    this.#sinks.set(connection, sink);
  }

  /** Ends a connection, or the listening: see {@link CloseTcp}. @throws CommandFailure */
  async close(cpu: Cpu, connection: number, form: CloseTcp, terminate = 0): Promise<void> {
    await this.#device.commands.execute(cpu, 'CLOSE_TCP', {
      inputModifier: connection,
      opcodeModifier: form,
      input: terminate,
    });
    if (form === CloseTcp.RELEASE) this.#sinks.delete(connection);
  }

  /** Stops listening. @throws CommandFailure */
  async stopListening(cpu: Cpu, number: number, listener: TcpListener): Promise<void> {
    for (const [cookie, other] of this.#listeners) if (other === listener) this.#listeners.delete(cookie);
    await this.close(cpu, number, CloseTcp.RELEASE);
  }

  #open(cpu: Cpu, values: Initial<typeof tcpContext>, form: OpenTcp): Promise<number> {
    const { commands } = this.#device;
    return commands.executeWithMailbox(cpu, 'OPEN_TCP', { opcodeModifier: form }, (bytes, at) =>
      tcpContext.encodeInto(values, bytes, at),
    );
  }

  #nextCookie(): number {
    this.#lastCookie = (this.#lastCookie + 1) >>> 0;
    return this.#lastCookie;
  }

  #event(address: number): void {
    const { view } = this.#device.platform.memory;
    const { subtype, connection, cookie } = tcpEqe.fields;
    const event = subtype.get(view, address) as TcpEvent;
    const number = connection.get(view, address);
    if (event === TcpEvent.ACCEPTED) {
      const listener = this.#listeners.get(cookie.get(view, address));
      if (listener === undefined) this.#orphaned(number);
      else this.#sinks.set(number, listener.accepted(number));
      return;
    }
    const sink = this.#sinks.get(number) ?? this.#opening.get(cookie.get(view, address));
    if (sink === undefined) this.droppedEvents++;
    else sink.tcpEvent(event);
  }
}

const streamBytesAt = streamMailbox.fields.bytes.field.offset;
