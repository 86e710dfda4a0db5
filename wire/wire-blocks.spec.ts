/** Contracts of every port of a cable, for all kinds: a new kind is checked by adding it to the list. */
import { describe, expect, it } from 'vitest';
import type { BlockState } from '../sim/block.ts';
import { Random } from '../sim/random.ts';
import { checkWires } from '../sim/wires-bench.ts';
import { EthernetBench } from './ethernet-bench.ts';
import { Opcode } from './opcodes.ts';
import { waitNames } from './send-wait.ts';
import { WireBench } from './wire-bench.ts';
import { ethernetPortWires, wirePortWires } from './wire-port-blocks.ts';

const US = 1_000_000;
const DOWN_US = 5;
const PAYLOAD_BYTES = 1000;
/** More than a receiver can hold. */
const COUNT = 12;

describe('the wires', () => {
  it('of an InfiniBand port lead to existing blocks, and each port is connected once', () => {
    checkWires(wirePortWires, () => new WireBench().a.port.blocks, ['port', 'sender']);
  });

  it('of an Ethernet port lead to existing blocks, and each port is connected once', () => {
    checkWires(ethernetPortWires, () => new EthernetBench().a.port.blocks, ['port']);
  });
});

/** One end of a cable, as the contracts use it. */
interface End {
  readonly lp: { readonly nowPs: number };
  onSpace: () => void;
  consumesAtOnce: boolean;
  readonly port: { inspect(): BlockState; setEnabled(isEnabled: boolean): void };
  at(timePs: number, action: () => void): void;
  /** Sends one, if the port accepts it: its bytes count up from `first`. */
  trySend(first: number): boolean;
  /** First byte values of the arrived ones. */
  arrived(): number[];
  consumeAll(): void;
  /** Packets sent while the link was down, or dropped by a full receiver: counted, so not lost. */
  droppedCount(): number;
  /** Picoseconds waited so far, by reason. */
  waits(): Readonly<Record<string, number>>;
}

interface Cable {
  readonly a: End;
  readonly b: End;
  bringUp(): Promise<number>;
  runTo(limitPs: number): Promise<void>;
}

interface Kind {
  readonly name: string;
  /** Whether a receiver that releases nothing stops the sender; otherwise excess packets are dropped and counted. */
  readonly hasFlowControl: boolean;
  make(): Cable;
}

function infinibandCable(): Cable {
  const bench = new WireBench({ receiveBufferBytes: 8448, creditReturnBytes: 512 });
  const endOf = (end: WireBench['a'], peer: WireBench['a']): End =>
    Object.assign(end, {
      trySend(first: number): boolean {
        if (!end.port.canTransmit(Opcode.RC_SEND_ONLY, PAYLOAD_BYTES)) return false;
        end.send(Opcode.RC_SEND_ONLY, PAYLOAD_BYTES, first);
        return true;
      },
      arrived: () => end.arrivals.map(({ psn }) => psn),
      droppedCount: () => peer.port.transmitted.discardedCount + end.port.received.linkDownDrops,
      waits: () => {
        const { creditWaitPs: credits, serializerWaitPs: serializer } = end.port.transmitted;
        return { credits, serializer };
      },
    });
  return { ...driven(bench), a: endOf(bench.a, bench.b), b: endOf(bench.b, bench.a) };
}

function ethernetCable(controlMacs: readonly number[] = []): Cable {
  const bench = new EthernetBench({ receiveFifoFrames: 4 }, 1, undefined, controlMacs);
  const endOf = (end: EthernetBench['a'], peer: EthernetBench['a']): End =>
    Object.assign(end, {
      trySend(first: number): boolean {
        if (!end.port.canTransmit()) return false;
        end.send(PAYLOAD_BYTES, first);
        return true;
      },
      arrived: () => end.arrivals.map(({ bytes }) => bytes[0]!),
      consumeAll: () => {
        for (const offset of end.held.splice(0)) end.port.consume(offset);
      },
      droppedCount: () => {
        const { fifoDrops, linkDownDrops } = end.port.received;
        return peer.port.transmitted.discardedFrames + fifoDrops + linkDownDrops;
      },
      waits: () => ({}),
    });
  return { ...driven(bench), a: endOf(bench.a, bench.b), b: endOf(bench.b, bench.a) };
}

const driven = (bench: WireBench | EthernetBench) => ({
  bringUp: () => bench.bringUp(),
  runTo: (limitPs: number) => bench.runTo(limitPs),
});

const kinds: readonly Kind[] = [
  { name: 'a wire port', hasFlowControl: true, make: infinibandCable },
  { name: 'an Ethernet port', hasFlowControl: false, make: () => ethernetCable() },
  { name: 'an Ethernet port with flow control', hasFlowControl: true, make: () => ethernetCable([1, 2]) },
];

/** Makes an end send this many, as fast as its port accepts them; measures the time of refusal. */
function keepSending(end: End, count: number) {
  const sending = { sent: 0, refusedPs: 0 };
  let refusedSincePs = -1;
  end.onSpace = () => {
    if (refusedSincePs >= 0) sending.refusedPs += end.lp.nowPs - refusedSincePs;
    refusedSincePs = -1;
    while (sending.sent < count && end.trySend(sending.sent)) sending.sent++;
    if (sending.sent < count) refusedSincePs = end.lp.nowPs;
  };
  return sending;
}

const statesOf = ({ a, b }: Cable): string[] =>
  [a, b].map(({ port }) => JSON.stringify(port.inspect(), null, 1));

/** A link with traffic in both directions for a random time, to receivers that may or may not accept it. */
async function interrupted(kind: Kind, seed: number) {
  const random = new Random(seed);
  const cable = kind.make();
  const upPs = await cable.bringUp();
  const fresh = statesOf(cable);
  const sendings = [cable.a, cable.b].map((end) => {
    end.consumesAtOnce = random.chance(0.5);
    const sending = keepSending(end, 1 + random.below(20));
    end.at(upPs + random.below(US), () => end.onSpace());
    return sending;
  });
  const atPs = upPs + random.below(20 * US);
  await cable.runTo(atPs);
  return { cable, fresh, atPs, sendings };
}

describe.each(kinds)('$name', (kind) => {
  it('has nothing left of the old link when it comes up again, in any state', async () => {
    let changedCount = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const { cable, fresh, atPs } = await interrupted(kind, seed);
      if (statesOf(cable).join() !== fresh.join()) changedCount++;
      for (const end of [cable.a, cable.b]) {
        end.at(atPs, () => end.port.setEnabled(false));
        end.at(atPs + DOWN_US * US, () => {
          end.consumesAtOnce = true;
          end.consumeAll();
          end.port.setEnabled(true);
        });
      }
      await cable.runTo(atPs + 40 * US);
      expect(statesOf(cable), `seed ${seed}`).toEqual(fresh);
    }
    expect(changedCount).toBeGreaterThan(10);
  });

  it('delivers each accepted packet once and in order, or counts it as dropped', async () => {
    for (let seed = 50; seed < 70; seed++) {
      const { cable, atPs, sendings } = await interrupted(kind, seed);
      for (const end of [cable.a, cable.b])
        end.at(atPs, () => {
          end.consumesAtOnce = true;
          end.consumeAll();
        });
      await cable.runTo(atPs + 400 * US);
      for (const [index, end] of [cable.b, cable.a].entries()) {
        const arrived = end.arrived();
        expect(arrived).toEqual([...new Set(arrived)].sort((one, other) => one - other));
        expect(arrived.length + end.droppedCount(), `seed ${seed}`).toBe(sendings[index]!.sent);
      }
    }
  });

  it('IBTA 7.9.4: is stopped by a receiver that accepts nothing, if it has flow control, and resumes with it', async () => {
    const cable = kind.make();
    const upPs = await cable.bringUp();
    cable.b.consumesAtOnce = false;
    const sending = keepSending(cable.a, COUNT);
    cable.a.at(upPs, () => cable.a.onSpace());
    await cable.runTo(upPs + 100 * US);
    expect(sending.sent < COUNT).toBe(kind.hasFlowControl);
    expect(cable.b.droppedCount() > 0).toBe(!kind.hasFlowControl);
    cable.b.at(upPs + 100 * US, () => {
      cable.b.consumesAtOnce = true;
      cable.b.consumeAll();
    });
    await cable.runTo(upPs + 200 * US);
    expect(sending.sent).toBe(COUNT);
    expect(cable.b.arrived().length + cable.b.droppedCount()).toBe(COUNT);
  });
});

describe('the waits of a wire port', () => {
  it('are counted by reason, to the picosecond of the sender’s own watch', async () => {
    const met = new Set<string>();
    for (const takes of [true, false]) {
      const cable = infinibandCable();
      const upPs = await cable.bringUp();
      cable.b.consumesAtOnce = takes;
      const before = cable.a.waits();
      const sending = keepSending(cable.a, COUNT);
      cable.a.at(upPs, () => cable.a.onSpace());
      cable.b.at(upPs + 50 * US, () => {
        cable.b.consumesAtOnce = true;
        cable.b.consumeAll();
      });
      await cable.runTo(upPs + 100 * US);
      const waited = Object.entries(cable.a.waits()).map(
        ([reason, ps]) => [reason, ps - before[reason]!] as const,
      );
      for (const [reason, ps] of waited) if (ps > 0) met.add(reason);
      expect(waited.reduce((sum, [, ps]) => sum + ps, 0)).toBe(sending.refusedPs);
    }
    expect(['nothing', ...met].sort()).toEqual([...waitNames].sort());
  });
});
