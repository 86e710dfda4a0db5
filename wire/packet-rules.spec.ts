/** Rules of faults by header: the matching packets are compared with a filter over the whole sequence. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../sim/random.ts';
import { DamagePlace } from './damage.ts';
import { Opcode } from './opcodes.ts';
import { type OutboundHeaders, PacketRule, type PacketSelection } from './packet-rules.ts';
import { WireBench } from './wire-bench.ts';
import type { PacketEffect } from './wire-faults.ts';

const { RC_ACKNOWLEDGE, RC_RDMA_WRITE_ONLY, RC_SEND_ONLY, UD_SEND_ONLY } = Opcode;
const never = { fired: (): void => {} };

const packets = fc.array(
  fc.record({
    opcode: fc.constantFrom(RC_SEND_ONLY, RC_ACKNOWLEDGE, UD_SEND_ONLY),
    destinationQpn: fc.constantFrom(3, 4),
    psn: fc.integer({ min: 0xff_fff8, max: 0x100_0008 }).map((psn) => psn % 2 ** 24),
  }),
  { maxLength: 60 },
);

/** Indices, from 0, of the packets to which a rule applies if its fault occurs for each of them. */
function placesOf(selection: PacketSelection, sequence: readonly OutboundHeaders[]): number[] {
  const rule = new PacketRule('lost', selection, never);
  return sequence.flatMap((packet, place) => {
    if (!rule.concerns(packet)) return [];
    rule.fired();
    return [place];
  });
}

const placesWhere = (
  sequence: readonly OutboundHeaders[],
  isWanted: (packet: OutboundHeaders) => boolean,
): number[] => sequence.flatMap((packet, place) => (isWanted(packet) ? [place] : []));

const kindOf = (opcode: number): string =>
  opcode === RC_ACKNOWLEDGE ? 'responses' : opcode === UD_SEND_ONLY ? 'datagrams' : 'requests';

describe('a rule of faults', () => {
  it('selects packets by their headers, then the nth of them, as often as it has shots', () => {
    fc.assert(
      fc.property(
        packets,
        fc.record(
          {
            destinationQpn: fc.constantFrom(3, 4),
            opcode: fc.constantFrom(RC_SEND_ONLY, UD_SEND_ONLY),
            only: fc.constantFrom('requests', 'responses', 'datagrams'),
            first: fc.integer({ min: 1, max: 5 }),
            shots: fc.integer({ min: 1, max: 4 }),
          },
          { requiredKeys: [] },
        ),
        (sequence, selection) => {
          const { destinationQpn, opcode, only, first = 1, shots = 100 } = selection;
          const wanted = placesWhere(
            sequence,
            (packet) =>
              (destinationQpn ?? packet.destinationQpn) === packet.destinationQpn &&
              (opcode ?? packet.opcode) === packet.opcode &&
              (only ?? kindOf(packet.opcode)) === kindOf(packet.opcode),
          );
          expect(placesOf(selection, sequence)).toEqual(wanted.slice(first - 1).slice(0, shots));
        },
      ),
    );
  });

  it('counts PSNs from the first of each connection and direction, past 2^24 too, if they are relative', () => {
    fc.assert(
      fc.property(packets, fc.integer({ min: 0, max: 6 }), (sequence, from) => {
        const psns = { first: from, last: from + 2, isRelative: true };
        const wanted = placesWhere(sequence, ({ destinationQpn, psn, opcode }) => {
          const first = sequence.find(
            (packet) =>
              packet.destinationQpn === destinationQpn &&
              (packet.opcode === RC_ACKNOWLEDGE) === (opcode === RC_ACKNOWLEDGE),
          )!.psn;
          const distance = (psn - first + 2 ** 24) % 2 ** 24;
          return distance >= from && distance <= from + 2;
        });
        expect(placesOf({ psns }, sequence)).toEqual(wanted);
      }),
    );
  });

  it('selects a share of the packets, the same ones for the same seed', () => {
    const sequence = Array.from({ length: 10_000 }, (_, psn) => ({
      opcode: RC_SEND_ONLY,
      destinationQpn: 3,
      psn,
    }));
    const drawn = (seed: number): number[] =>
      placesOf({ chance: { probability: 0.1, random: new Random(seed, 'rule') } }, sequence);
    expect(drawn(1)).toEqual(drawn(1));
    expect(drawn(1)).not.toEqual(drawn(2));
    // Binomial: 1000, with a standard deviation of 30.
    expect(Math.abs(drawn(1).length - 1000)).toBeLessThan(150);
  });

  it('IBTA vol 1, annex A17: finds no number in a CNP', () => {
    const cnp = { opcode: Opcode.CNP, destinationQpn: 3, psn: 0 };
    const acknowledgement = { opcode: Opcode.RC_ACKNOWLEDGE, destinationQpn: 3, psn: 77 };
    const psns = { first: 0, last: 0 };
    expect(placesOf({ psns: { ...psns, isRelative: false } }, [cnp])).toEqual([]);
    // The first acknowledgement is the first one, also after a CNP.
    expect(placesOf({ psns: { ...psns, isRelative: true } }, [cnp, acknowledgement])).toEqual([1]);
  });

  it('keeps its shots if its fault did not occur', () => {
    const rule = new PacketRule('reordered', { shots: 1 }, never);
    const packet = { opcode: RC_SEND_ONLY, destinationQpn: 3, psn: 0 };
    expect(rule.concerns(packet)).toBe(true);
    expect(rule.concerns(packet)).toBe(true);
    rule.fired();
    expect(rule.concerns(packet)).toBe(false);
  });
});

describe('a rule on the cable', () => {
  /** Sends WRITEs with PSNs 0 to 9 to QP 7, each with its number. @returns the arrived packets, and how often the rule fired */
  async function sent(effect: PacketEffect, selection: PacketSelection) {
    const bench = new WireBench({ packetForm: 'bytes' });
    const upPs = await bench.bringUp();
    let fired = 0;
    bench.a.port.faults.addRule(effect, selection, { fired: () => fired++ });
    bench.a.at(upPs, () => {
      for (let psn = 0; psn < 10; psn++) {
        bench.a.port.outboundHeaders.destinationQpn = 7;
        bench.a.port.outboundHeaders.psn = psn;
        bench.a.send(RC_RDMA_WRITE_ONLY, 64, psn);
      }
    });
    await bench.runTo(upPs + 20_000_000);
    return { fired, psns: bench.b.arrivals.map(({ psn }) => psn), port: bench.b.port };
  }

  it('loses, copies and reorders the packets that it selects', async () => {
    const psns = { first: 2, last: 3, isRelative: false };
    expect(await sent({ kind: 'lost' }, { psns })).toMatchObject({
      fired: 2,
      psns: [0, 1, 4, 5, 6, 7, 8, 9],
    });
    expect(await sent({ kind: 'duplicated', passes: 1, delayPs: 1 }, { psns, shots: 1 })).toMatchObject({
      fired: 1,
      psns: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2],
    });
    expect(await sent({ kind: 'reordered', passes: 2, delayPs: 1e7 }, { first: 5, last: 5 })).toMatchObject({
      fired: 1,
      psns: [0, 1, 2, 3, 5, 6, 4, 7, 8, 9],
    });
  });

  it('IBTA 7.8: damage on the link is detected by the VCRC, damage within a switch by the ICRC alone', async () => {
    const psns = { first: 4, last: 4, isRelative: true };
    for (const place of Object.values(DamagePlace))
      for (const isInside of [false, true]) {
        const { fired, psns: arrived, port } = await sent({ kind: 'corrupted', place, isInside }, { psns });
        expect({ fired, arrived }).toEqual({ fired: 1, arrived: [0, 1, 2, 3, 5, 6, 7, 8, 9] });
        expect(port.received.corrupted.packetTotal).toBe(1);
        expect(port.received.invariantCrcErrors).toBe(isInside ? 1 : 0);
      }
  });

  it('does nothing if no packet matches, and reports it', async () => {
    const { fired, psns } = await sent({ kind: 'lost' }, { destinationQpn: 8 });
    expect([fired, psns.length]).toEqual([0, 10]);
  });
});
