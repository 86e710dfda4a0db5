/** `hca why FILE` names lines of the file, not of the helpers that it calls. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { hca } from '../testing/in-process.ts';
import { faultsOf, type Output } from '../testing/schemas.ts';
import type { WhyResult } from './why.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-why-'));
afterAll(() => rmSync(folder, { recursive: true }));

const library = JSON.stringify(new URL('../../browser.ts', import.meta.url).href);
const helpers = `
import * as rdma from ${library};
export async function open(program) {
  const endpoint = await rdma.openEndpoint(program);
  const region = await register(endpoint);
  return { endpoint, region };
}
async function register(endpoint) {
  return await rdma.createBuffer(endpoint, 4096);
}
export async function free(region) {
  await rdma.deregMr(region);
}
`;
const program = `
import { free, open } from './helpers.ts';
export async function host0(program) {
  const { region } = await open(program);
  const own = region.region;
  await free(own);
  await free(own); // freed twice
}
export async function host1(program) {}
`;

it('runs a program for each host of the topology', async () => {
  const file = join(folder, 'two-pairs.ts');
  writeFileSync(
    file,
    `export async function host0({ exchange }) { await exchange.put('word', 'of host 0'); }
export async function host2({ exchange }) { throw new Error(await exchange.take('word')); }
`,
  );
  const { out } = await hca('why', file, '--topology', '0-2,1-3');
  expect(out).toContain('A program of host 2 threw "Error: of host 0"');
  const { code, err } = await hca('why', file);
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('with host2", expected exports for host0 and host1'),
  ]);
});

it('names the line of the program that calls a helper, and the helper', async () => {
  writeFileSync(join(folder, 'helpers.ts'), helpers);
  const file = join(folder, 'program.ts');
  writeFileSync(file, program);
  const json = join(folder, 'out.json');
  const { out } = await hca('why', file, '--json', json);
  const output = JSON.parse(readFileSync(json, 'utf8')) as Output & WhyResult;
  expect(faultsOf(output)).toEqual([]);
  const [cause] = output.causes;
  const line = program.split('\n').findIndex((text) => text.includes('freed twice')) + 1;
  const within = helpers.split('\n').findIndex((text) => text.includes('deregMr')) + 1;
  expect(cause).toMatchObject({
    cause: 'verb-refused',
    line: `${file}:${line}`,
    within: [`${join(folder, 'helpers.ts')}:${within}`],
  });
  expect(out).toContain(`  at ${file}:${line} (by way of ${join(folder, 'helpers.ts')}:${within})`);
});
