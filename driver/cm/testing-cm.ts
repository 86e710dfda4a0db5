/**
 * Two CMs for specs, joined by a wire on which each message can be watched, lost, doubled or made up. Time advances only when
 * no message is left to deliver.
 */
import { fromHex } from '../../base/bytes.ts';
import type { Cpu, DriverPlatform } from '../platform.ts';
import { CmAttribute, cmHeaderOf } from './cm-mad.ts';
import { CommunicationIds } from './communication-ids.ts';
import type { Connection } from './connection.ts';
import { ConnectionManager } from './connection-manager.ts';
import type { CmListener, ConnectionOwner, ConnectionParameters } from './connector.ts';
import type { Path } from './path.ts';

export type MessageName = keyof typeof CmAttribute;

interface Sent {
  readonly from: number;
  readonly name: MessageName;
  readonly bytes: Uint8Array;
  readonly atPs: number;
}

const names = new Map<number, MessageName>(
  (Object.entries(CmAttribute) as [MessageName, number][]).map(([name, number]) => [number, name]),
);

/** More than any conversation needs: answers to a message in flight, and answers to those answers. */
const stormMessages = (onTheirWay: number): number => 100 + 20 * onTheirWay;

const gid = (node: number): Uint8Array => fromHex(`fe80000000000000000000000000000${node + 1}`);

/** Records the events of its connection. */
export class Program implements ConnectionOwner {
  readonly events: string[] = [];
  connection: Connection | undefined;
  replied = (): void => void this.events.push('replied');
  established = (): void => void this.events.push('established');
  rejected = (_cpu: Cpu, reason: number): void => void this.events.push(`rejected ${reason}`);
  unreachable = (): void => void this.events.push('unreachable');
  failed = (_cpu: Cpu, errno: number): void => void this.events.push(`failed ${errno}`);
  disconnected = (): void => void this.events.push('disconnected');
  timewaitEnded = (): void => void this.events.push('timewait exit');
}

/** Annex A11: version 0 and IPv4, port 0x8000, 10.0.0.1 to 10.0.0.2; then nothing of the program's. */
export const requestPrivateData = fromHex(
  `00408000${'0'.repeat(24)}0a000001${'0'.repeat(24)}0a000002${'0'.repeat(112)}`,
);

/** Addresses of both programs, as the active one sees them. */
const addresses = {
  src: { sinAddr: '10.0.0.1', sinPort: 0x8000 },
  dst: { sinAddr: '10.0.0.2', sinPort: 7 },
} as const;

export const parameters = (qpn: number): ConnectionParameters => ({
  qpn,
  responderResources: 2,
  initiatorDepth: 3,
  flowControl: 1,
  retryCount: 6,
  rnrRetryCount: 5,
  srq: 0,
  privateData: Uint8Array.of(1, 2, 3),
});

export class CmBench {
  nowPs = 0;
  /** Every message that was sent, lost or not. */
  readonly sent: Sent[] = [];
  /** Whether a message arrives; a number: how many copies. */
  pass: (message: Sent) => boolean | number = () => true;
  readonly managers: ConnectionManager[];
  readonly cpu: Cpu;
  /** One for each node: they outlive its device. */
  private readonly ids = [new CommunicationIds(0), new CommunicationIds(0)];
  private readonly listeners = [
    new Map<bigint, CmListener<Connection>>(),
    new Map<bigint, CmListener<Connection>>(),
  ];
  private readonly platform: DriverPlatform;
  private drawn = 1;
  private readonly running: Promise<void>[] = [];
  private readonly wire: Sent[] = [];
  private readonly timers: { readonly duePs: number; readonly due: () => void }[] = [];

  constructor() {
    const bench = this;
    this.cpu = { coreIndex: 0, charge: () => undefined, settle: async () => undefined } as unknown as Cpu;
    this.platform = {
      startTimer: (delayPs: number, due: () => void) => {
        if (!(delayPs >= 0 && delayPs < 2 ** 52)) throw new Error(`a timer of ${delayPs} ps`);
        bench.timers.push({ duePs: bench.nowPs + delayPs, due });
      },
      stopwatch: () => {
        const startPs = bench.nowPs;
        return {
          get elapsedPs() {
            return bench.nowPs - startPs;
          },
        };
      },
      randomBits: () => (bench.drawn = (Math.imul(bench.drawn, 0x41c6_4e6d) + 12_345) >>> 0),
      spawn: (_name: string, body: (cpu: Cpu) => Promise<void>) => void bench.running.push(body(bench.cpu)),
    } as unknown as DriverPlatform;
    this.managers = [0, 1].map((node) => this.newManager(node));
  }

  /** The device of a node is reset: it forgets all connections. With `isRebooted` its host does, too, and begins with the same IDs. */
  reset(node: number, isRebooted = false): void {
    this.managers[node]!.close();
    if (isRebooted) this.ids[node] = new CommunicationIds(0);
    this.managers[node] = this.newManager(node);
  }

  stopListening(): void {
    this.listeners[1]!.clear();
  }

  private newManager(node: number): ConnectionManager {
    return new ConnectionManager({
      platform: this.platform,
      caGuid: BigInt(0xca00 + node),
      ids: this.ids[node]!,
      listeners: this.listeners[node]!,
      send: (_cpu, bytes) => this.transmit(node, bytes),
    });
  }

  /** Timers of the kernel that have not expired. */
  get timerCount(): number {
    return this.timers.length;
  }

  /** Names of the messages sent so far, an arrow for each direction. */
  get conversation(): string[] {
    return this.sent.map(({ from, name }) => (from === 0 ? `${name} >` : `< ${name}`));
  }

  path(): Path {
    const port = (node: number) => ({ lid: node + 1, gid: gid(node) });
    return { local: port(0), remote: port(1), serviceLevel: 0, mtu: 5, rate: 7, packetLifeTime: 18 };
  }

  /** A program of node 0 asks for a service. */
  connect(qpn = 0x48, serviceId = 7n): Program {
    const program = new Program();
    program.connection = this.managers[0]!.newConnection(this.path());
    program.connection.owner = program;
    program.connection.connect(this.cpu, serviceId, addresses, parameters(qpn));
    return program;
  }

  /** A program of node 1 listens and answers with the result of `answer`; the returned list holds the requests it received. */
  listen(answer: (connection: Connection) => 'taken' | 'full' | number = () => 'taken'): Program[] {
    const programs: Program[] = [];
    const listener: CmListener<Connection> = {
      requested: (_cpu, _request, connection) => {
        const result = answer(connection);
        if (result !== 'taken') return result;
        const program = new Program();
        program.connection = connection;
        connection.owner = program;
        programs.push(program);
        return result;
      },
    };
    this.listeners[1]!.set(7n, listener);
    return programs;
  }

  /** A connection that both programs use. */
  async established(qpns: readonly [number, number] = [0x48, 0x52]): Promise<[Program, Program]> {
    const taken = this.listen();
    const active = this.connect(qpns[0]);
    await this.deliver();
    const passive = taken.at(-1)!;
    passive.connection!.reply(this.cpu, parameters(qpns[1]));
    await this.deliver();
    active.connection!.readyToUse(this.cpu);
    await this.deliver();
    this.stopListening();
    return [active, passive];
  }

  /** A message of any sender, as it arrives at a node. */
  forge(to: number, bytes: Uint8Array): void {
    const from = { lid: 2 - to, serviceLevel: 0 };
    this.managers[to]!.receive(this.cpu, { from, bytes });
  }

  /** Delivers the messages in flight, and those that they cause. */
  async deliver(): Promise<void> {
    await Promise.all(this.running.splice(0));
    const most = stormMessages(this.wire.length);
    for (let at = 0; at < this.wire.length; at++) {
      if (at === most)
        throw new Error(`each of ${at} messages had an answer, the last ${this.wire[at]!.name}`);
      const { from, bytes } = this.wire[at]!;
      this.forge(1 - from, bytes);
    }
    this.wire.length = 0;
  }

  /** Lets time pass, and delivers all messages that fall due. */
  async elapse(durationPs: number): Promise<void> {
    const endPs = this.nowPs + durationPs;
    await this.deliver();
    for (;;) {
      this.timers.sort((left, right) => left.duePs - right.duePs);
      const first = this.timers[0];
      if (first === undefined || first.duePs > endPs) break;
      this.timers.shift();
      this.nowPs = first.duePs;
      first.due();
      await this.deliver();
    }
    this.nowPs = endPs;
  }

  private transmit(from: number, bytes: Uint8Array): void {
    const name = names.get(cmHeaderOf(bytes)!.attributeId)!;
    const message = { from, name, bytes, atPs: this.nowPs };
    this.sent.push(message);
    const copies = Number(this.pass(message));
    for (let copy = 0; copy < copies; copy++) this.wire.push(message);
  }
}
