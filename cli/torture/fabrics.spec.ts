/** Stories of fabrics among those of two hosts: their share, and how a campaign is repeated. */
import { expect, it, vi } from 'vitest';
import { fabricStoryOf } from '../../torture/index.ts';
import { hca } from '../testing/in-process.ts';
import type { Output } from '../testing/schemas.ts';

vi.setConfig({ testTimeout: 120_000 });

interface Campaign extends Output {
  readonly stories: number;
  readonly coverage: { readonly ends: Readonly<Record<string, object>> };
  readonly invocation: { readonly arguments: readonly string[] };
}

it('plays a story of a fabric for a seed that the number divides', async () => {
  const options = ['--seeds', '16..16', '--fabrics', '16', '--jobs', '1', '--json', '-'];
  const { code, out } = await hca('torture', ...options);
  const { stories, coverage, invocation } = JSON.parse(out) as Campaign;
  expect([code, stories]).toEqual([0, 1]);
  // Requests of fabrics are counted by the kind of their flow, those of two hosts by transport and verb.
  const kinds = new Set<string>(fabricStoryOf(16).flows.map(({ kind }) => kind));
  expect(new Set(Object.keys(coverage.ends))).toEqual(kinds);
  expect(invocation.arguments.slice(0, 4)).toEqual(options.slice(0, 4));
});

it('has them among new stories without an option, and not among those of named seeds', async () => {
  const fresh = await hca('torture', '--minutes', '1e-9', '--jobs', '1');
  expect(fresh.out).toContain('Seeds that 16 divides are of hosts and switches.');
  const named = await hca('torture', '--seeds', '31..31', '--minutes', '1e-9', '--jobs', '1');
  expect(named.out).not.toContain('divides');
});

it.each([['--seed', '3'], ['--scene', 'taken-away'], ['--no-shortcuts'], ['--fabric']])(
  'refuses a share with %s',
  async (...option) => {
    const { code, err } = await hca('torture', '--fabrics', '4', ...option);
    expect([code, err]).toEqual([2, expect.stringContaining('--fabrics is')]);
  },
);
