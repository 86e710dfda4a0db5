/** The sentences about transports, on figures that trip each condition. */
import { expect, it } from 'vitest';
import type { SweepRow } from '../sweep/index.ts';
import { StudyFigures } from './study.ts';
import { transports } from './transports.ts';

type Axes = SweepRow['axes'];

/** QPs and receive queues of a host with four threads, by hand. */
function queuesOf({ connection, useSrq, topology }: Axes): readonly [qps: number, queues: number] {
  const peers = topology === 'star:4' ? 3 : 7;
  if (connection === 'UD') return [4, 4];
  if (connection === 'XRC') return [2 * peers * 4, 1];
  return [2 * peers * 16, useSrq === true ? 1 : peers * 16];
}

function answerTo(change: (axes: Axes) => Readonly<Record<string, number>>): readonly string[] {
  const rows = (transports.spec.points ?? []).flatMap((point) =>
    ['star:4', 'star:8'].map((topology): SweepRow => {
      const axes = { ...point, topology };
      const [qpCount, receiveQueueCount] = queuesOf(axes);
      const contexts = (topology === 'star:4' ? 4 : 8) * qpCount;
      return {
        ...{ hash: JSON.stringify(axes), index: 0, axes, status: 'done' },
        figures: {
          ...{ bytesPerSecond: 64 * 8 * 2e6, qpCount, receiveQueueCount, 'caches.qpc.misses': contexts },
          ...change(axes),
        },
      };
    }),
  );
  return transports.answer(new StudyFigures(rows));
}

it('counts QPs, and compares the fastest transport with RC', () => {
  const [rates] = answerTo(({ connection }) => (connection === 'UD' ? { bytesPerSecond: 64 * 8 * 5e6 } : {}));
  expect(rates).toBe(
    'Between 8 hosts of 4 threads each, a host has 224 QPs with RC, 224 QPs with RC with a shared queue, 56 QPs with XRC, 4 QPs with UD, and sends 2.00, 2.00, 2.00, 5.00 million SENDs of 64 bytes a second: UD 2.5 times as many as RC.',
  );
});

it('names the transports whose contexts are loaded again for more than one message in four', () => {
  expect(answerTo(() => ({}))[1]).toBe("Up to 8 hosts all contexts of QPs fit into the card's cache.");
  // 8 hosts send 64 messages to 7 others each: 3584 messages, after 8 times 224 first loads.
  const withMisses = (share: number) =>
    answerTo(({ connection, useSrq, topology }) =>
      connection === 'RC' && useSrq === false && topology === 'star:8'
        ? { 'caches.qpc.misses': 8 * 224 + share * 3584 }
        : {},
    )[1];
  expect(withMisses(0.24)).toBe("Up to 8 hosts all contexts of QPs fit into the card's cache.");
  expect(withMisses(0.26)).toContain('with RC from 8 hosts on (224 QPs); not with the others.');
  expect(answerTo(() => ({ 'caches.qpc.misses': 1e6 }))[1]).not.toContain('not with the others');
});

it('gives each receive queue the windows of the peers that may use it', () => {
  // Seven peers, windows of 32, 64 bytes: 112 queues of one peer; one queue of seven; of datagrams four of seven, with a GRH of 40 bytes each.
  expect(answerTo(() => ({}))[2]).toContain(
    'a host needs 224 KiB with RC, 14 KiB with RC with a shared queue, 14 KiB with XRC, 91 KiB with UD.',
  );
});
