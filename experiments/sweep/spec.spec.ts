/** Specifications: their valid contents; every error in one is detected before anything runs. */

import { describe, expect, it, test } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { canonicalJson } from '../../machine/profile/canonical-json.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import { pointsOf } from './expansion.ts';
import { checkedSpec, parsedSpec } from './spec.ts';
import { specSchema } from './spec-schema.ts';

const workload = 'write-bw,size=64,iters=10';

describe('a specification', () => {
  it('is read from YAML and from JSON, and means the same as options', () => {
    const yaml = `
workload: { test: write-bw, size: 64, region: 64Mi, pattern: random }
machine: { profile: connectx3-fdr, seed: 7, set: { pcie.link.lanes: 4 } }
vary:
  hca.mttCacheLines: 16..64*2
  pcie.link.generation: [3, 4]
sample: lhs:3
`;
    const same = checkedSpec({
      workload: 'write-bw,size=64,region=64Mi,pattern=random',
      machine: { profile: 'connectx3-fdr', seed: 7, set: { 'pcie.link.lanes': 4 } },
      vary: { 'hca.mttCacheLines': ['16', 32, '64'], 'pcie.link.generation': '3..4+1' },
      sample: { latinHypercube: 3, seed: 1 },
    });
    expect(parsedSpec(yaml, 'a')).toEqual(same);
    expect(parsedSpec(JSON.stringify({ workload, vary: { size: [2, 4] } }), 'a').vary).toEqual([
      { path: 'size', values: [2, 4] },
    ]);
  });

  const vary = { size: [2, 4] };
  test.each([
    [null, 'fields with values'],
    [[], 'fields with values'],
    ['write-bw', 'fields with values'],
    [{ vary }, 'workload is "left out"'],
    [{ workload: 3, vary }, 'a text such as write-bw,size=64'],
    [{ workload: 'write-bv', vary }, 'did you mean write-bw?'],
    [{ workload: 'write-bw,sise=3', vary }, 'did you mean size?'],
    [{ workload: 'write-bw,size=3,size=4', vary }, 'given once'],
    [{ workload: 'write-bw,size', vary }, 'an integer from 1'],
    [{ workload: { test: 'write-bw', size: 0 }, vary }, 'an integer from 1'],
    [{ workload, varry: vary }, 'did you mean vary?'],
    [{ workload, vary: [] }, 'fields with values'],
    [{ workload, vary: {} }, 'at least one axis, or points'],
    [{ workload }, 'at least one axis, or points'],
    [{ workload, points: {} }, 'a list of points'],
    [{ workload, points: [3] }, 'fields with values'],
    [{ workload, points: [{}] }, 'values by axis'],
    [{ workload, points: [{ size: '2..8*2' }] }, 'an integer from 1'],
    [{ workload, points: [{ sise: 2 }] }, 'did you mean size?'],
    [{ workload, vary, points: [{ size: 8 }] }, 'axes that vary does not have as well'],
    [{ workload, vary, sample: 'lhs' }, 'lhs: and the number of points'],
    [{ workload, vary, sample: 'lhs:0' }, 'lhs: and the number of points'],
    [{ workload, vary, sample: 'lhs:9999999' }, 'lhs: and the number of points'],
    [{ workload, vary, sample: { latinHypercube: 2.5 } }, 'an integer from 1'],
    [{ workload, vary, sample: { latinHypercube: 2, seeds: 3 } }, 'did you mean seed?'],
    [{ workload, points: [{ size: 8 }], sample: 'lhs:3' }, 'left out without axes'],
    [{ workload, vary, machine: { profil: 'x' } }, 'did you mean profile?'],
    [{ workload, vary, machine: { profile: 'connectx3-qrd' } }, 'did you mean connectx3-qdr?'],
    [{ workload, vary, machine: { profile: 3 } }, 'a name or a file'],
    [{ workload, vary, machine: { seed: -1 } }, 'an integer from 0'],
    [{ workload, vary, machine: { seed: 7, set: { 'machine.seed': 3 } } }, 'left out with machine.seed 3'],
    [{ workload, vary, machine: { set: { 'pcie.link.lane': 4 } } }, 'did you mean pcie.link.lanes?'],
    [{ workload, vary, machine: { set: { 'pcie.link.lanes': 3 } } }, 'a power of two'],
    [{ workload, vary, machine: { faults: [{ paket: 'lost' }] } }, 'fault 1'],
    [{ workload, vary, machine: { faults: 3 } }, 'a list of faults'],
    [{ workload, vary, machine: { partition: 'per-node' } }, 'one of profile, set, seed, faults'],
    [{ workload, vary: { size: '1..1000+1', txDepth: '1..10000+1' } }, 'at most 1000000'],
  ])('is rejected: %j', (value, words) => {
    expect(() => checkedSpec(value)).toThrow(ConfigurationError);
    expect(() => checkedSpec(value)).toThrow(words);
  });

  it('is rejected as text that is not YAML', () => {
    expect(() => parsedSpec('vary: [1', 'a.yaml')).toThrow('YAML or JSON');
  });

  it('has the keys of its schema', () => {
    expect(Object.keys(specSchema.properties)).toEqual(['workload', 'machine', 'vary', 'points', 'sample']);
    expect(JSON.stringify(specSchema)).toContain('"pattern"');
  });
});

describe('the points of a sweep', () => {
  const valuesOf = (value: unknown): unknown[] =>
    pointsOf(checkedSpec(value)).map(({ axes }) => Object.values(axes));

  it('are all combinations, the last axis fastest', () => {
    expect(valuesOf({ workload, vary: { 'pcie.link.generation': [3, 4], size: [2, 4, 8] } })).toEqual([
      [3, 2],
      [3, 4],
      [3, 8],
      [4, 2],
      [4, 4],
      [4, 8],
    ]);
  });

  it('are the explicit ones, each with every combination', () => {
    const points = [{ 'pcie.link.lanes': 4, 'wire.speed': 'QDR' }, { 'pcie.link.lanes': 8 }];
    expect(valuesOf({ workload, points })).toEqual([
      [4, 'QDR'],
      [8, null],
    ]);
    expect(valuesOf({ workload, points, vary: { size: [2, 4] } })).toEqual([
      [4, 'QDR', 2],
      [4, 'QDR', 4],
      [8, null, 2],
      [8, null, 4],
    ]);
  });

  it('are drawn', () => {
    const drawn = valuesOf({ workload, vary: { size: '1..1000' }, sample: 'lhs:10' });
    expect(drawn).toHaveLength(10);
  });

  it('have the orders that run them: axes change workload, parameters and profile', () => {
    const [point] = pointsOf(
      checkedSpec({
        workload,
        machine: { seed: 3, set: { 'pcie.link.lanes': 4 } },
        points: [{ size: 128, profile: 'connectx3-fdr', 'pcie.link.generation': 4 }],
      }),
    );
    expect(point!.order!.machine).toEqual({
      seed: 3,
      profile: 'connectx3-fdr',
      set: { 'pcie.link.lanes': 4, 'pcie.link.generation': 4 },
    });
    expect(point!.order!.args).toMatchObject({ verb: 'write', sizeBytes: 128, iterations: 10 });
  });

  it('of traffic over a fabric have its pattern, its hosts and a topology, star:8 if none is named', () => {
    const [plain, few] = pointsOf(checkedSpec({ workload: 'incast,messages=5', vary: { hosts: '8,3' } }));
    expect(plain!.order!.args).toEqual({
      ...{ pattern: 'incast', verb: 'write', hostCount: 8, sizeBytes: 65_536, messages: 5, window: 16 },
    });
    expect(plain!.order!.machine.topology).toEqual(parsedTopology('star:8'));
    expect(few!.order!.args).toMatchObject({ hostCount: 3 });
    expect(few!.order!.workload).toBe('incast,messages=5,hosts=3');
    const [star, ring] = pointsOf(
      checkedSpec({ workload: 'incast', vary: { test: 'permutation', topology: 'star:4,ring:6' } }),
    );
    expect(star!.order!.args).toMatchObject({ pattern: 'permutation', hostCount: 4 });
    expect(ring!.order!.args).toMatchObject({ pattern: 'permutation', hostCount: 6 });
    expect(ring!.order!.machine.topology).toEqual(parsedTopology('ring:6'));
  });

  it.each([
    [{ workload: 'incast', vary: { hosts: '9' } }, 'hosts is 9, expected at most those of the topology, 8'],
    [
      { workload: 'incast,iters=5', vary: { hosts: '3' } },
      'field of incast is "iters", expected one of size, ',
    ],
    [{ workload: 'incats', vary: { hosts: '3' } }, 'did you mean incast'],
    [{ workload: 'incast', vary: { topology: 'star:99' } }, 'topology star:99, hosts'],
    [{ workload: 'incast', vary: { topology: 4 } }, 'topology is "4", expected a name'],
    [{ workload: 'write-bw,hosts=3', vary: { size: '64' } }, 'workload field is "hosts"'],
  ])('refuse of a fabric %j', (spec, message) => {
    expect(() => pointsOf(checkedSpec(spec))).toThrow(message);
  });

  it('have the seeds of their axis, for any seed of the machine', () => {
    const seeds = { 'machine.seed': '1..3+1' };
    const points = pointsOf(checkedSpec({ workload, machine: { seed: 7 }, vary: seeds }));
    const own = pointsOf(checkedSpec({ workload, vary: seeds }));
    expect(points.map(({ hash }) => hash)).toEqual(own.map(({ hash }) => hash));
    expect(new Set(points.map(({ hash }) => hash)).size).toBe(3);
    const [first] = pointsOf(checkedSpec({ workload, machine: { seed: 1 }, vary: { size: '64' } }));
    const [same] = pointsOf(checkedSpec({ workload, vary: { 'machine.seed': '1', size: '64' } }));
    expect(same!.hash).toBe(first!.hash);
  });

  it('that are impossible are refused with the reason; if all are, the sweep is rejected', () => {
    const points = pointsOf(
      checkedSpec({ workload: 'write-bw,iters=10,region=4K,pattern=random', vary: { size: [64, 8192] } }),
    );
    expect(points.map(({ refusal }) => refusal)).toEqual([
      undefined,
      'region is 4096, expected at least size 8192',
    ]);
    expect(() => valuesOf({ workload: 'write-lat', vary: { region: ['4K', '8K'] } })).toThrow(
      'points that can run; the first: region is 4096',
    );
    expect(() => valuesOf({ workload, vary: { 'machine.adapter': ['nic'] } })).toThrow('hca for a sweep');
  });

  it('are identified by parameters, seed, faults and workload, for any axes', () => {
    const hashOf = (value: object): string => pointsOf(checkedSpec(value))[0]!.hash;
    const plain = hashOf({ workload, vary: { size: 64 } });
    expect(plain).toMatch(/^[\da-f]{64}$/);
    expect(hashOf({ workload: 'write-bw,size=128,iters=10', vary: { size: 64 } })).toBe(plain);
    expect(hashOf({ workload, vary: { 'pcie.link.generation': 3 } })).toBe(plain);
    expect(
      hashOf({
        workload,
        machine: { set: { 'pcie.link.generation': 2 } },
        vary: { 'pcie.link.generation': 3 },
      }),
    ).toBe(plain);
    const others = [
      { workload, vary: { size: 65 } },
      { workload, vary: { 'pcie.link.generation': 4 } },
      { workload, machine: { seed: 2 }, vary: { size: 64 } },
      { workload, machine: { faults: [{ packet: 'corrupted', nth: 5 }] }, vary: { size: 64 } },
    ].map(hashOf);
    expect(new Set([plain, ...others]).size).toBe(5);
    expect(canonicalJson({ b: 1, a: 2 })).toBe('{"a":2,"b":1}');
  });
});
