/** Recordings of `hca compare`: one timeline for each run, by the writer of `hca perf` and `hca move`. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { hca } from '../testing/in-process.ts';

const root = mkdtempSync(join(tmpdir(), 'hca-compare-timeline-'));
afterAll(() => rmSync(root, { recursive: true }));
let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});

const one = ['compare', '--sizes', '64', '--count', '2'];

it('each of several runs has files of its own, with path and size in their names, and the same figures', async () => {
  const [trace, vcd] = [join(folder, 'out.perfetto-trace'), join(folder, 'out.vcd')];
  const words = ['compare', '--sizes', '64,256', '--count', '2', '--paths', 'sockets,write'];
  const { code, out, err } = await hca(...words, '--timeline', trace, '--vcd', vcd);
  expect([code, err]).toEqual([0, '']);
  const names = ['sockets-64', 'write-64', 'sockets-256', 'write-256'];
  const expected = names.flatMap((name) => [`out.${name}.perfetto-trace`, `out.${name}.vcd`]);
  expect(readdirSync(folder).toSorted()).toEqual(expected.toSorted());
  for (const name of names) {
    const [events] = new RegExp(`Recorded (\\d+) events in [^\\n]*out\\.${name}\\.perfetto-trace`)
      .exec(out)!
      .slice(1);
    expect(Number(events)).toBeGreaterThan(1000);
    // One process for each host and each device; the card for sockets is a NIC.
    const bytes = readFileSync(join(folder, `out.${name}.perfetto-trace`), 'latin1');
    for (const part of [
      'host0',
      'host1',
      ...(name.startsWith('sockets') ? ['nic0', 'nic1'] : ['hca0', 'hca1']),
    ])
      expect(bytes).toContain(part);
    expect(readFileSync(join(folder, `out.${name}.vcd`), 'latin1')).toContain('$scope module host0 $end');
  }
  const plain = await hca(...words);
  expect(out.slice(0, out.indexOf('Recorded '))).toBe(plain.out);
}, 240_000);

it('a single run has the named file, whose extension --trace recognises', async () => {
  const trace = join(folder, 'one.pftrace');
  const { code, out } = await hca(...one, '--paths', 'write', '--trace', trace);
  expect(code).toBe(0);
  expect(out).toContain(`Recorded`);
  expect(readdirSync(folder)).toEqual(['one.pftrace']);
  const { code: wrong, err } = await hca(...one, '--trace', 'tlps');
  expect(wrong).toBe(2);
  expect(err).toContain('expected a file that ends in .perfetto-trace, .pftrace or .vcd.');
});

it('a bounded recording reports the omitted records, and an empty one that it is empty', async () => {
  const [small, none] = [join(folder, 'small.pftrace'), join(folder, 'none.pftrace')];
  const bounded = await hca(...one, '--paths', 'write', '--timeline', small, '--timeline-records', '100');
  expect(bounded.out).toMatch(/hca0: the first 100 events of the window were kept, \d+ later ones dropped/);
  // Four processes, 100 events each, with the names of their tracks.
  expect(statSync(small).size).toBeLessThan(200_000);
  const empty = await hca(...one, '--paths', 'write', '--timeline', none, '--timeline-window', '5s..6s');
  expect(empty.out).toMatch(/Nothing was recorded in this window: the machine ran from 0 to [\d.]+/);
});
