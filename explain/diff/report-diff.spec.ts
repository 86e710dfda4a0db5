import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { checkedOutput, type Output, parsedTolerance, reportDiff } from './index.ts';

const perf = (changes: object = {}): Output =>
  checkedOutput('perf.json', {
    schema: 'hca-perf/2',
    invocation: {
      command: 'perf',
      version: '0.1.0',
      arguments: ['write-bw'],
      machine: { set: {}, seed: 1, faults: [] },
    },
    configHash: 'aa',
    rows: [row(64, 1000), row(128, 2000)],
    ...changes,
  });

const row = (sizeBytes: number, durationPs: number, caches: object = { mtt: { hits: 9, misses: 0 } }) => ({
  args: { sizeBytes, iterations: 10 },
  result: { durationPs },
  isBalanced: true,
  caches: [caches],
});

const invocation = (machine: object, version = '0.1.0', words = ['write-bw']): object => ({
  invocation: {
    command: 'perf',
    version,
    arguments: words,
    machine: { set: {}, seed: 1, faults: [], ...machine },
  },
});

const report = (config: object, rest: object = {}): Output =>
  checkedOutput('report.json', {
    schema: 'hca-report/1',
    configHash: JSON.stringify(config),
    config,
    ...rest,
  });

const pathsOf = (before: Output, after: Output, tolerances: readonly string[] = []): string[] =>
  reportDiff(before, after, tolerances.map(parsedTolerance)).groups.flatMap(({ changes }) =>
    changes.filter(({ isWithinTolerance }) => !isWithinTolerance).map(({ path }) => path),
  );

describe('figures', () => {
  it('are equal if all are the same', () => {
    expect(reportDiff(perf(), perf())).toMatchObject({ isEqual: true, changed: 0, request: [], groups: [] });
  });

  it('that differ are grouped, the largest change first, in either direction', () => {
    const after = perf({
      rows: [row(64, 1100, { mtt: { hits: 1, misses: 3 } }), { ...row(128, 500), isBalanced: false }],
    });
    const { groups, changed, beyond, isEqual } = reportDiff(perf(), after);
    expect([changed, beyond, isEqual]).toEqual([5, 5, false]);
    expect(groups.map(({ group }) => group)).toEqual(['results', 'times', 'caches']);
    // 2000 to 500 is a factor of 4, 1000 to 1100 one of 1.1; a change from zero exceeds any factor.
    expect(groups[1]!.changes).toEqual([
      expect.objectContaining({ path: 'rows.size=128.result.durationPs', change: -0.75 }),
      expect.objectContaining({ path: 'rows.size=64.result.durationPs', change: 0.1 }),
    ]);
    expect(groups[2]!.changes.map(({ before, after: now, change }) => [before, now, change])).toEqual([
      [0, 3, null],
      [9, 1, -8 / 9],
    ]);
  });

  it('of rows are matched by subject: an additional row does not shift the others', () => {
    const after = perf({ rows: [row(32, 5), row(64, 1000), row(128, 2000)] });
    const paths = pathsOf(perf(), after);
    expect(paths.length).toBeGreaterThan(0);
    expect(paths.every((path) => path.startsWith('rows.size=32.'))).toBe(true);
  });

  it('of a single row each are compared for any sizes; several rows are matched by size', () => {
    const [small, large] = [perf({ rows: [row(64, 1000)] }), perf({ rows: [row(128, 2000)] })];
    const { request, groups, isEqual } = reportDiff(small, large);
    expect(isEqual).toBe(false);
    expect(request).toEqual([
      { what: 'workload', name: 'rows.only.args.sizeBytes', before: 64, after: 128, isAsked: true },
    ]);
    expect(groups.flatMap(({ changes }) => changes)).toEqual([
      { path: 'rows.only.result.durationPs', before: 1000, after: 2000, change: 1, isWithinTolerance: false },
    ]);
    expect(pathsOf(large, small)).toEqual(['rows.only.result.durationPs']);
    expect(pathsOf(small, perf({ rows: [row(64, 1100)] }))).toEqual(['rows.size=64.result.durationPs']);
    expect(pathsOf(small, perf()).every((path) => path.startsWith('rows.size=128.'))).toBe(true);
  });

  it('of switches and their ports have their numbers, wherever they are in their lists', () => {
    const fabric = (...ports: readonly (readonly [port: number, drops: number])[]): Output =>
      report(
        {},
        {
          switches: [
            {
              node: 4,
              ports: ports.map(([port, drops]) => ({ port, notForwarded: { noRoute: drops } })),
            },
          ],
          outputs: ports.map(([port, drops]) => ({ switch: 4, port, drops })),
        },
      );
    const { groups } = reportDiff(fabric([1, 0], [3, 5]), fabric([3, 6], [1, 0]), []);
    expect(groups.map(({ group }) => group)).toEqual(['switches']);
    expect(groups[0]!.changes.map(({ path }) => path)).toEqual([
      'outputs.switch4.3.drops',
      'switches.switch4.ports.port3.notForwarded.noRoute',
    ]);
  });

  it('of the next bottlenecks are matched by name, at any index of the list', () => {
    const [cable, core] = [
      {
        name: 'cable from host 0 to 1',
        kind: 'server',
        share: 0.6,
        turn: [{ what: '--mtu', towards: 'more' }],
      },
      { name: 'core of host 0', kind: 'server', share: 0.5, turn: [] },
    ];
    const of = (...next: object[]): Output =>
      perf({ rows: [{ ...row(64, 1), bottleneck: { binds: cable, next } }] });
    expect(reportDiff(of(cable, core), of(core, cable))).toMatchObject({ isEqual: true, changed: 0 });
    expect(pathsOf(of(cable, core), of({ ...core, share: 0.7 }, cable))).toEqual([
      'rows.size=64.bottleneck.next.core of host 0.share',
    ]);
  });

  it('of a bottleneck are its name and shares, and not the advice', () => {
    const turn = [{ what: 'pcie.link.lanes', towards: 'more' }];
    const [cable, slot] = ['cable from host 0 to 1', 'PCIe link of host 0 to the device'].map((name) => ({
      name,
      kind: 'server',
      share: 0.9,
      turn,
    }));
    const of = (binds: object, ...next: object[]): Output =>
      perf({ rows: [{ ...row(64, 1), bottleneck: { binds, next } }] });
    const { groups } = reportDiff(of(cable!, { ...slot!, turn: [] }), of({ ...slot!, turn: [] }, cable!));
    expect(groups.map(({ group }) => group)).toEqual(['results']);
    expect(groups[0]!.changes.map(({ path }) => path).toSorted()).toEqual([
      'rows.size=64.bottleneck.binds.name',
      'rows.size=64.bottleneck.next.PCIe link of host 0 to the device.share',
      'rows.size=64.bottleneck.next.cable from host 0 to 1.share',
    ]);
  });

  it('of two rows with the same subject are matched by order', () => {
    const twice = (last: number): Output => perf({ rows: [row(64, 1), row(64, last)] });
    expect(pathsOf(twice(1), twice(2))).toEqual(['rows.size=64#2.result.durationPs']);
  });

  it('past 2^53 ps are compared by all their digits', () => {
    const at = (digits: string): Output => report({}, { exactPs: { elapsedPs: digits } });
    expect(pathsOf(at('9007199254740993'), at('9007199254740995'))).toEqual(['exactPs.elapsedPs']);
    expect(pathsOf(at('9007199254740993'), at('9007199254740995'), ['1%'])).toEqual([]);
  });

  it('do not include recordings, which may be left out of one of the runs', () => {
    const written = { files: ['a.pftrace'], records: 9 };
    expect(reportDiff(report({}, { timeline: written }), report({}))).toMatchObject({ isEqual: true });
  });

  it('do not include wall-clock times', () => {
    const at = (seconds: number): Output =>
      checkedOutput('t', { schema: 'hca-torture/1', stories: 3, seconds });
    expect(reportDiff(at(1), at(2))).toMatchObject({ isEqual: true, figures: 1 });
  });
});

describe('a tolerance', () => {
  const after = perf({ rows: [row(64, 1040, { mtt: { hits: 10, misses: 0 } }), row(128, 1980)] });

  it.each([
    [['1%'], ['rows.size=64.result.durationPs', 'rows.size=64.caches.0.mtt.hits']],
    [['4%'], ['rows.size=64.caches.0.mtt.hits']],
    [['12%'], []],
    [['caches.*=12%'], ['rows.size=64.result.durationPs', 'rows.size=128.result.durationPs']],
    [['durationPs=4%'], ['rows.size=64.caches.0.mtt.hits']],
    [['times.*=4%', '20%'], []],
    // The general tolerance has the lowest priority; of the others, the last one wins.
    [
      ['times.*=0%', '20%'],
      ['rows.size=64.result.durationPs', 'rows.size=128.result.durationPs'],
    ],
    [['*hits=0%', '*hits=20%', '4%'], []],
    [['size=64.*=20%'], ['rows.size=128.result.durationPs']],
    // A pattern matches whole names.
    [
      ['uration*=9%', 'c.*=99%'],
      ['rows.size=64.result.durationPs', 'rows.size=128.result.durationPs', 'rows.size=64.caches.0.mtt.hits'],
    ],
  ])('%j leaves %j', (tolerances, left) => {
    expect(pathsOf(perf(), after, tolerances)).toEqual(left);
  });

  it('is relative to the first value, and zero if that is zero', () => {
    const at = (durationPs: number): Output => perf({ rows: [row(64, durationPs)] });
    expect(pathsOf(at(100), at(110), ['10%'])).toEqual([]);
    expect(pathsOf(at(110), at(100), ['9%'])).toHaveLength(1);
    expect(pathsOf(at(0), at(1), ['100%'])).toHaveLength(1);
  });

  it.each(['', '5', '%', '-1%', 'pcie.*', '=5%', 'pcie.*=', 'pcie.*=5', '1e3%'])('%j is none', (text) => {
    expect(() => parsedTolerance(text)).toThrow(ConfigurationError);
  });
});

describe('the request', () => {
  it.each<[string, object, object]>([
    ['a parameter', { set: { 'a.b': 2 } }, { what: 'parameter', name: 'a.b', after: 2 }],
    ['the seed', { seed: 2 }, { what: 'seed', before: 1, after: 2 }],
    ['a fault', { faults: ['reset=stuck,node=0'] }, { what: 'fault', after: 'reset=stuck,node=0' }],
  ])('may differ in %s, and then the outputs are not equal', (_what, machine, change) => {
    const { request, isEqual, beyond } = reportDiff(perf(), perf(invocation(machine)));
    expect(request).toEqual([expect.objectContaining({ ...change, isAsked: true })]);
    expect([isEqual, beyond]).toEqual([false, 0]);
  });

  it('may differ in how often the same fault is injected', () => {
    const fault = 'packet=lost,nth=2';
    const [once, twice] = [[fault], [fault, fault]].map((faults) => perf(invocation({ faults })));
    expect(reportDiff(once!, twice!)).toMatchObject({
      isEqual: false,
      request: [{ what: 'fault', after: fault, isAsked: true }],
    });
    expect(reportDiff(twice!, once!).request).toMatchObject([{ what: 'fault', before: fault }]);
    expect(reportDiff(twice!, twice!)).toMatchObject({ isEqual: true, request: [] });
  });

  it('may differ in arguments of the command and of the programs', () => {
    const rows = [{ ...row(64, 1000), args: { sizeBytes: 64, iterations: 20 } }, row(128, 2000)];
    const { request } = reportDiff(
      perf(),
      perf({ ...invocation({}, '0.1.0', ['write-bw', '--iters', '20']), rows }),
    );
    expect(request).toEqual([
      expect.objectContaining({ what: 'arguments', after: 'write-bw --iters 20' }),
      expect.objectContaining({
        what: 'workload',
        name: 'rows.size=64.args.iterations',
        before: 10,
        after: 20,
      }),
    ]);
  });

  it('does not differ because of the version, nor because one version has an additional parameter', () => {
    const newer = perf({ ...invocation({}, '0.2.0'), configHash: 'bb' });
    expect(reportDiff(perf(), newer)).toMatchObject({
      isEqual: true,
      request: [{ what: 'version' }, { what: 'configuration' }],
    });
    const [one, other] = [report({ a: { b: 1 } }), report({ a: { b: 1, c: 2 } })];
    expect(reportDiff(one, other)).toMatchObject({ isEqual: true, request: [{ name: 'a.c', after: 2 }] });
  });

  it('differs if only its hash differs', () => {
    expect(reportDiff(perf(), perf({ configHash: 'bb' }))).toMatchObject({
      isEqual: false,
      request: [{ what: 'configuration' }],
    });
  });

  it('is read from all parameters if both outputs have them', () => {
    const [one, other] = [
      report({ a: { b: 1 }, machine: { seed: 1 } }),
      report({ a: { b: 4 }, machine: { seed: 1 } }),
    ];
    expect(reportDiff(one, other).request).toEqual([
      { what: 'parameter', name: 'a.b', before: 1, after: 4, isAsked: true },
    ]);
  });
});

describe('a file that is not an output', () => {
  it.each([
    [[], 'undefined'],
    [null, 'undefined'],
    [{ schema: 5 }, '5'],
    [{ schema: 'hca-soup/1' }, 'hca-soup/1'],
    [{ schema: 'constructor/1' }, 'constructor/1'],
    [{ schema: 'hca-perf/3' }, 'update hca'],
    [{ schema: 'hca-perf/0' }, 'write it again'],
  ])('%j is rejected', (value, words) => {
    expect(() => checkedOutput('x.json', value)).toThrow(ConfigurationError);
    expect(() => checkedOutput('x.json', value)).toThrow(words);
  });

  it('of another kind, or nested indefinitely, is rejected', () => {
    expect(() => reportDiff(perf(), report({}))).toThrow('expected hca-perf/2');
    const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`) as object;
    expect(() => reportDiff(perf(), perf({ deep }))).toThrow(/^.{1,200}$/);
  });
});

describe('topologies', () => {
  /** A run over one switch, whose hosts have a cable each: the last host is the receiver of the others. */
  const star = (hosts: number, metres?: number): Output => {
    const links = Array.from({ length: hosts }, (_, node) => ({
      ends: [
        { node, port: 1 },
        { node: hosts, port: node + 1 },
      ],
      ...(metres === undefined || node > 0 ? {} : { metres }),
    }));
    const nodes = Array.from({ length: hosts + 1 }, (_, node) => ({
      kind: node < hosts ? 'host' : 'switch',
    }));
    const flows = Array.from({ length: hosts - 1 }, (_, at) => ({ from: at + 1, to: 0, durationPs: hosts }));
    const outputs = links.map((_, at) => ({ switch: hosts, port: at + 1, to: at, packets: 10 * hosts }));
    return checkedOutput('fabric.json', {
      schema: 'hca-fabric/1',
      args: { pattern: 'incast', hostCount: hosts },
      flows,
      outputs,
      report: { topology: { nodes, links } },
    });
  };

  it('that are unlike are compared where both have a host, a cable or an output; switches by their order', () => {
    const { request, groups, figures, unmatched, isEqual } = reportDiff(star(3), star(4));
    expect(isEqual).toBe(false);
    expect(request).toEqual([
      { what: 'workload', name: 'args.hostCount', before: 3, after: 4, isAsked: true },
      { what: 'topology', name: 'hosts', before: 3, after: 4, isAsked: true },
      { what: 'topology', name: 'cables', before: 3, after: 4, isAsked: true },
      { what: 'topology', name: 'cable #0.4-3', after: 'as configured', isAsked: true },
    ]);
    // Two flows of three figures and three outputs of four; one flow and one output are of four hosts alone.
    expect([figures, unmatched]).toEqual([2 * 3 + 3 * 4, 3 + 4]);
    expect(groups.flatMap(({ changes }) => changes.map(({ path }) => path)).toSorted()).toEqual([
      ...['flows.1-0.durationPs', 'flows.2-0.durationPs'],
      ...[1, 2, 3].map((port) => `outputs.switch#0.${port}.packets`),
    ]);
  });

  it('that differ in a cable say in which property', () => {
    const { request, unmatched, isEqual } = reportDiff(star(3), star(3, 50));
    expect([unmatched, isEqual]).toEqual([0, false]);
    expect(request).toEqual([
      { what: 'topology', name: 'cable #0.1-0', before: 'as configured', after: 'metres=50', isAsked: true },
    ]);
  });

  it('that differ in a node alone say in which property: how a switch forwards, partitions of a host', () => {
    const changed = (first: object, last: object): Output => {
      const { topology } = star(3)['report'] as { topology: { nodes: object[]; links: object[] } };
      const nodes = topology.nodes.map((node, at) => ({
        ...node,
        ...(at === 0 ? first : at === 3 ? last : {}),
      }));
      return checkedOutput('fabric.json', { ...star(3), report: { topology: { ...topology, nodes } } });
    };
    const { request, isEqual } = reportDiff(
      star(3),
      changed({ partitions: [0x7fff, 2] }, { forwarding: 'store-and-forward' }),
    );
    expect(isEqual).toBe(false);
    const what = 'topology';
    const before = 'as configured';
    expect(request).toEqual([
      { what, name: 'host 0', before, after: 'partitions=32767,2', isAsked: true },
      { what, name: 'switch #0', before, after: 'forwarding=store-and-forward', isAsked: true },
    ]);
  });

  it('that are the same are no change', () => {
    expect(reportDiff(star(3), star(3))).toMatchObject({ isEqual: true, request: [] });
    expect(reportDiff(star(3), star(3))).not.toHaveProperty('unmatched');
  });

  it('that no machine can have are refused', () => {
    const odd = checkedOutput('odd.json', { ...star(3), report: { topology: { nodes: 3 } } });
    expect(() => reportDiff(star(3), odd)).toThrow(ConfigurationError);
  });
});
