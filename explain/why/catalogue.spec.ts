/** The catalogue of mistakes: each is identified with its numbers and its line, and correct programs have no finding. */
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { Machine } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import { parsedTopology, type TopologyEntry } from '../../machine/topology/index.ts';
import { diagnosedRun } from './index.ts';
import type { DiagnosedRun } from './run.ts';
import { cmMistakes } from './testing/cm-mistakes.ts';
import { furtherMistakes } from './testing/further-mistakes.ts';
import { iwarpMistakes, rightIwarpPrograms } from './testing/iwarp-mistakes.ts';
import { type Mistake, mistakes, type Network, rightPrograms } from './testing/mistakes.ts';

const networks: Readonly<Record<Network, ParameterValues>> = {
  InfiniBand: {},
  RoCE: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
  iWARP: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
};

/** The first frame of the catalogue itself: the scene acts like a library of the program. */
function placeOf(stack: string | undefined): string | undefined {
  const place = /testing\/(?:\w+-)?mistakes\.ts:(\d+)/.exec(stack ?? '');
  return place?.[1];
}

/** Hosts of a mistake's two programs. */
interface Placed {
  readonly topology?: TopologyEntry;
  readonly nodes: readonly [first: number, second: number];
}
const inPair: Placed = { nodes: [0, 1] };

async function run(
  { host0, host1, set, faults, watch }: Pick<Mistake, 'host0' | 'host1' | 'set' | 'faults' | 'watch'>,
  network: Network,
  { topology, nodes: [first, second] }: Placed = inPair,
): Promise<DiagnosedRun> {
  await using machine = await Machine.create({
    set: { ...networks[network], ...set },
    ...(topology === undefined ? {} : { topology }),
    ...(faults === undefined ? {} : { faults }),
    ...(watch === undefined ? {} : { watch }),
    analysis: { evidence: { placeOf: () => placeOf(new Error('place').stack) } },
  });
  await machine.load({ node: first, name: `host${first}`, run: host0 });
  await machine.load({ node: second, name: `host${second}`, run: host1 });
  return await diagnosedRun(machine, (error) => placeOf(error instanceof Error ? error.stack : undefined));
}

const cases = [...mistakes, ...furtherMistakes, ...cmMistakes, ...iwarpMistakes].flatMap((mistake) =>
  (mistake.networks ?? (['InfiniBand', 'RoCE'] as const)).map((network) => ({ network, mistake })),
);
const chosen = process.env['WHY'];

describe.each(cases.filter(({ mistake }) => chosen === undefined || mistake.name.includes(chosen)))(
  '$network: $mistake.name',
  ({ network, mistake }) => {
    it(`is found: ${mistake.cause}`, async () => {
      const { error, findings } = await run(mistake, network);
      const found = findings.filter(({ weight }) => weight === (mistake.isNote === true ? 'note' : 'fault'));
      if (process.env['WHY_SHOW'] !== undefined) console.log(error, findings);
      expect(found.map(({ cause, node }) => ({ cause, node }))).toContainEqual({
        cause: mistake.cause,
        node: mistake.node ?? 0,
      });
      const finding = found.find(({ cause }) => cause === mistake.cause)!;
      expect(finding.sentence).toMatch(mistake.says);
      expect(finding.evidence).toMatchObject(mistake.evidence ?? {});
      expect(finding.advice).not.toBe('');
      // A mistake has exactly one cause; notes on lost time may be several.
      if (mistake.isNote !== true) expect(found.map(({ cause }) => cause)).toEqual([mistake.cause]);
    });
  },
);

it('names the line that posted, called or waited', () => {
  const names = [
    'dest_qp_num is another number',
    'no receive is posted',
    'the rkey is of nobody',
    'the peer has deregistered the memory',
    'the send queue is full of unsignalled requests',
    'the request is unsignalled, and its completion awaited',
    'the CQ was never armed',
    'one message less than expected',
  ];
  const script = new URL('./testing/lines.ts', import.meta.url).pathname;
  const receive = 'the receive has an lkey of nobody';
  const output = execFileSync(process.execPath, [script, ...names, receive], { encoding: 'utf8' });
  const found = JSON.parse(output) as Readonly<Record<string, string>>;
  for (const name of names) expect(`${name}: ${found[name]}`).toContain('// here');
  // The mistake is in the receive; the failed request is the peer's.
  expect(found[receive]).toContain('here.receive({ lkey:');
});

it('names the fault of a forwarding entry of a switch, by which a request got no answer', async () => {
  const plain = mistakes.find(({ name }) => name === 'every packet of the sender is lost')!;
  const faults = [{ forwarding: 'none', node: 2, host: 1, at: '0ms' }] as const;
  const placed = { topology: parsedTopology('star:2'), nodes: [0, 1] } as const;
  const { findings } = await run({ ...plain, faults }, 'InfiniBand', placed);
  expect(findings.map(({ cause }) => cause)).toEqual(['forwarding-entry']);
  expect(findings[0]!.sentence).toMatch(
    /a forwarding entry of a switch was wrong by the injected fault forwarding=none,.*host=1/,
  );
});

it('names the host at the other end of the cable, for any numbering', async () => {
  const topology = parsedTopology('0-3,1-2');
  for (const { host0, host1, cause, node = 0, says } of cmMistakes) {
    if (!cause.startsWith('connection-')) continue;
    const { findings } = await run({ host0, host1 }, 'InfiniBand', { topology, nodes: [2, 1] });
    const sentence = new RegExp(says.source.replaceAll('host 0', 'host 2'));
    expect(findings.filter(({ weight }) => weight === 'fault')).toMatchObject([
      { cause, node: node === 0 ? 2 : 1, sentence: expect.stringMatching(sentence) },
    ]);
  }
});

it('recognises a refused library call in a program’s own copy of the library', async () => {
  // The command line runs a build: a program that imports the sources has another class of the same name.
  class VerbsError extends Error {
    override readonly name = 'VerbsError';
  }
  const host0 = (): Promise<void> =>
    Promise.reject(new VerbsError('ibv_dealloc_pd: the PD has 1 users (EBUSY)'));
  const { findings } = await run({ host0, host1: async () => {} }, 'InfiniBand');
  expect(findings).toMatchObject([{ cause: 'verb-refused', node: 0, evidence: { verb: 'ibv_dealloc_pd' } }]);
});

describe.each(rightPrograms)('a program without a mistake: $name', (program) => {
  it.each(['InfiniBand', 'RoCE'] as const)('is not accused on %s', async (network) => {
    const { error, findings } = await run(program, network);
    expect(error).toBeUndefined();
    expect(findings.filter(({ weight }) => weight === 'fault')).toEqual([]);
  });
});

describe.each(rightIwarpPrograms)('a program without a mistake: $name', (program) => {
  it('is not accused on iWARP', async () => {
    const { error, findings } = await run(program, 'iWARP');
    expect(error).toBeUndefined();
    expect(findings.filter(({ weight }) => weight === 'fault')).toEqual([]);
  });
});
