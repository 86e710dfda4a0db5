/** Crossings of measured lines, and the outputs of the command. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { hca } from '../testing/in-process.ts';
import { type Sample, simulatedCrossing } from './cutoff-crossing.ts';

vi.setConfig({ testTimeout: 300_000 });

describe('a simulated crossing', () => {
  const lines = { eager: (size: number) => 1000 + 2 * size, cached: (size: number) => 6000 + size };
  const sampleOf = (size: number): Sample => ({
    size,
    firstPs: lines.eager(size),
    secondPs: lines.cached(size),
  });

  it('is found to one percent, with the fewest measurements', async () => {
    let measured = 0;
    const measure = async (way: string, sizes: readonly number[]) => {
      measured += sizes.length;
      return sizes.map(way === 'eager' ? lines.eager : lines.cached);
    };
    const samples = [1024, 2048, 4096, 8192].map(sampleOf);
    // 1000 + 2 n = 6000 + n at 5000.
    expect(await simulatedCrossing(measure, ['eager', 'cached'], samples)).toBe(5000);
    // One round of three sizes for each of two ways suffices: the lines are straight.
    expect(measured).toBe(6);
  });

  it.each([
    ['steps', (size: number) => 3000 * Math.ceil(size / 500)],
    ['a wall behind a plain', (size: number) => (size < 7900 ? size : 1e6 * size)],
    ['a wall before a plain', (size: number) => (size < 4150 ? size : 40_000 + size)],
    ['a curve', (size: number) => 20_000 + (size - 4000) ** 2 / 1000],
  ])('is found in a curved line: %s', async (_name, eager) => {
    const cached = (): number => 31_500;
    let measured = 0;
    const measure = async (way: string, sizes: readonly number[]) => {
      measured += sizes.length;
      return sizes.map(way === 'eager' ? eager : cached);
    };
    const samples = [4096, 8192].map((size) => ({ size, firstPs: eager(size), secondPs: cached() }));
    const found = await simulatedCrossing(measure, ['eager', 'cached'], samples);
    const first = Array.from({ length: 4096 }, (_, at) => 4097 + at).find((size) => eager(size) > cached())!;
    expect(Math.abs(found! / first - 1)).toBeLessThan(0.01);
    // Each round halves the interval's ratio: seven rounds of 3 sizes for each of two ways reduce a ratio of 2 below
    // 1.01.
    expect(measured).toBeLessThanOrEqual(42);
  });

  it('is undefined if the second loses at the end, and the smallest size if it always wins', async () => {
    const never = async (): Promise<number[]> => [];
    const loses = [{ size: 64, firstPs: 1, secondPs: 2 }];
    expect(await simulatedCrossing(never, ['eager', 'cached'], loses)).toBeUndefined();
    const wins = [{ size: 64, firstPs: 2, secondPs: 1 }];
    expect(await simulatedCrossing(never, ['eager', 'cached'], wins)).toBe(64);
  });
});

describe('hca cutoff', () => {
  it('prints lines and crossings that the formula agrees with, and writes JSON and a self-contained page', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hca-cutoff-'));
    try {
      const [json, html] = [join(folder, 'c.json'), join(folder, 'c.html')];
      const files = ['--json', json, '--html', html];
      const { code, out } = await hca('cutoff', '--sizes', '5K..20K', ...files);
      expect(code).toBe(0);
      for (const waiting of ['poll', 'event']) expect(out).toContain(`waiting by ${waiting}`);
      const { schema, results } = JSON.parse(readFileSync(json, 'utf8'));
      expect(schema).toBe('hca-cutoff/1');
      for (const { crossings } of results) {
        const [cached, onTheFly] = crossings;
        expect(cached.simulatedBytes).toBeGreaterThan(5 * 1024);
        expect(Math.abs(cached.formulaBytes / cached.simulatedBytes - 1)).toBeLessThan(0.05);
        // 1.2 µs per page costs more than copying it at 10 GB/s.
        expect(onTheFly.note).toMatch(/^never in this range/);
      }
      const page = readFileSync(html, 'utf8');
      expect(page).not.toMatch(/(src|href)\s*=\s*["']?(https?:)?\/\//);
      expect(page).toContain('new uPlot');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each([
    ['by WRITE', 0, ['--sizes', '10K..40K', '--rendezvous', 'write']],
    // Copying is slow and pages are cheap: then registration on the fly wins too.
    [
      'on the fly',
      1,
      [
        ...['--sizes', '112K..144K', '--set', 'host.cost.copyBytesPerCycle=1'],
        ...['--set', 'host.cost.registerRegionPerPage=0', '--set', 'host.cost.pinPerPage=0'],
        // A measured point has as many messages as cycle through all buffers.
        ...['--set', 'messaging.bufferCount=4', '--set', 'messaging.rendezvousCount=1'],
      ],
    ],
  ] as const)(
    'finds by simulation and by formula the same crossing to registration %s within a twentieth, for polling and for events',
    async (_name, which, args) => {
      const { out } = await hca('cutoff', ...args, '--json', '-');
      const { sizes, results } = JSON.parse(out);
      expect(results.map(({ waiting }: { waiting: string }) => waiting)).toEqual(['poll', 'event']);
      for (const { crossings } of results) {
        const { simulatedBytes, formulaBytes } = crossings[which];
        // A crossing inside the range, not at its end.
        expect(simulatedBytes).toBeGreaterThan(1.05 * sizes[0]);
        expect(simulatedBytes).toBeLessThan(sizes.at(-1));
        expect(Math.abs(formulaBytes / simulatedBytes - 1)).toBeLessThan(0.05);
      }
    },
  );

  it.each(['read', 'write'])(
    'RFC 5040, 5.5: finds every byte over iWARP where the payload moves by %s, and says that the formula is of other networks',
    async (rendezvous) => {
      const iwarp = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.transport=iwarp'];
      const words = ['--sizes', '1K..2K', '--waiting', 'poll', '--rendezvous', rendezvous];
      const { code, out, err } = await hca('cutoff', ...words, ...iwarp);
      expect([code, err]).toEqual([0, '']);
      expect(out).toContain('The formula is of InfiniBand and RoCE.');
      expect((await hca('cutoff', ...words)).out).not.toContain('InfiniBand');
    },
  );

  it.each([
    [['--sizes', '64'], 'expected two sizes'],
    [['--sizes', '1M..64'], 'the smaller one first'],
    [['--waiting', 'asleep'], 'poll, event, both'],
    [['--set', 'messaging.cutofBytes=1'], 'cutoffBytes'],
  ])('answers %s with one line and exit code 2', async (args, text) => {
    const { code, err } = await hca('cutoff', ...args);
    expect([code, err.trim().split('\n').length]).toEqual([2, 1]);
    expect(err).toContain(text);
  });
});
