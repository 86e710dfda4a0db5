/** Loads of ports by hand, and the conditions of the sentences about parameter servers, on figures that trip each. */
import { describe, expect, it } from 'vitest';
import { parsedTopology } from '../../machine/topology/index.ts';
import type { SweepRow } from '../sweep/index.ts';
import { loadsOf, parameterServer } from './parameter-server.ts';
import { StudyFigures } from './study.ts';

const vector = 384 * 1024;

describe('the most loaded port of 16 hosts', () => {
  // In vectors. A server's port: workers / servers. Between switches: workers on one side times servers on the other / servers;
  // a spine has the routes to half of the hosts of a rack.
  it.each([
    ['star:16', 'packed', 1, 15],
    ['star:16', 'packed', 8, 1],
    // Four workers send one vector each; a server has a third.
    ['star:16', 'packed', 12, 1],
    ['star:16', 'co-located', 16, 15 / 16],
    ['dumbbell:16', 'packed', 8, 8],
    ['dumbbell:16', 'packed', 2, 8],
    ['dumbbell:16', 'spread', 2, 7],
    ['dumbbell:16', 'spread', 8, 2],
    ['dumbbell:16', 'co-located', 16, (8 * 8) / 16],
    // Twelve workers of other racks, by two spines.
    ['leaf-spine:2x4:16', 'packed', 4, 6],
    // One server in each rack: its own port has twelve quarters, the cable to its rack nine.
    ['leaf-spine:2x4:16', 'spread', 4, 3],
    // Four hosts of a rack to twelve others, by two spines.
    ['leaf-spine:2x4:16', 'co-located', 16, (4 * 12) / 16 / 2],
  ])('on %s, %s, %i servers, sends %d vectors in each phase', (topology, placement, servers, vectors) => {
    const place = { placement, servers, size: vector };
    const { push, pull } = loadsOf(parsedTopology(topology), place);
    expect([push.bytes / vector, pull.bytes / vector]).toEqual([vectors, vectors]);
  });

  it('is between switches where servers are packed on a dumbbell, and a server’s on a star', () => {
    const portsOn = (topology: string) =>
      loadsOf(parsedTopology(topology), { placement: 'packed', servers: 1, size: vector });
    // One server in the second rack: 15 workers at its port, 8 of them by the cable. Switch 16 has the hosts 0 to 15.
    expect(portsOn('dumbbell:16').push.ports).toEqual([{ node: 17, port: 8 }]);
    expect(portsOn('dumbbell:16').pull.ports).toEqual([{ node: 15, port: 1 }]);
    expect(portsOn('star:16').push.ports).toEqual([{ node: 16, port: 16 }]);
  });
});

/** Points of a dumbbell of 16 hosts with two and eight servers. */
function pointsOf(change: (axes: SweepRow['axes']) => SweepRow['figures']): StudyFigures {
  const large = { topology: 'dumbbell:16', hosts: 16, size: vector };
  const places = [
    { topology: 'dumbbell:16', hosts: 2, size: 64, servers: 1, placement: 'packed' },
    ...['packed', 'spread'].flatMap((placement) =>
      [2, 8].map((servers) => ({ ...large, servers, placement })),
    ),
    { ...large, servers: 16, placement: 'co-located' },
  ];
  return new StudyFigures(
    places.map((axes, index) => ({
      ...{ hash: `${index}`, index, axes, status: 'done' as const },
      figures: {
        ...{ medianPs: axes.size === 64 ? 8e6 : 1e9, bytesPerSecond: 2e9, cableBytesPerSecond: 4e9 },
        busiestPort: 'switch 16 to switch 17',
        ...change(axes),
      },
    })),
  );
}

describe('the answer', () => {
  it('divides the time by alpha and the bytes of the busiest port of both phases', () => {
    // Packed: 8 vectors each way at 4 bytes a nanosecond, and 8 us of two hosts. Spread: 2 vectors.
    const boundPs = (vectors: number): number => 8e6 + 2 * vectors * vector * 250;
    const [times] = parameterServer.answer(
      pointsOf(({ placement, size }) =>
        size === 64
          ? {}
          : {
              medianPs: placement === 'packed' ? 1.5 * boundPs(8) : placement === 'spread' ? boundPs(2) : 2e9,
            },
      ),
    );
    expect(times).toContain('With 8 servers among 16 hosts');
    expect(times).toMatch(/on dumbbell:16 .* \(1\.5\) packed, .* \(1\) spread, and 2000 µs/);
  });

  it('names the ports that the routes load most, and the measured busiest one where it is another', () => {
    const [, same] = parameterServer.answer(pointsOf(() => ({})));
    expect(same).toBe(
      'The most loaded ports are on dumbbell:16 those between switches (packed), between switches (spread), between switches (co-located).',
    );
    const [, other] = parameterServer.answer(
      pointsOf(({ placement }) => (placement === 'spread' ? { busiestPort: 'switch 17 to host 15' } : {})),
    );
    expect(other).toContain('between switches (spread; the busiest is switch 17 to host 15)');
  });

  it('says from how many servers on more do not help, by a twentieth of gradients a second', () => {
    const rateOf = (gain: number) =>
      parameterServer.answer(
        pointsOf(({ placement, servers }) => ({
          bytesPerSecond: placement === 'spread' && servers === 8 ? gain * 2e9 : 2e9,
        })),
      )[2];
    expect(rateOf(1.04)).toContain('2 packed (2000 MB/s) and 2 spread (2000 MB/s), and');
    expect(rateOf(1.06)).toContain('2 packed (2000 MB/s) and 8 spread (2120 MB/s, the most asked), and');
    expect(rateOf(2)).toContain('16 co-located ones add up 0.5 times the best of them');
  });
});
