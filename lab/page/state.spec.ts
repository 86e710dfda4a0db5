/** Addresses of the lab: they contain everything that is shown, and invalid fields are named. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparePaths, fabricTraffic, labNetworks, labVerbs, scenarioNames } from '../protocol.ts';
import { addressOf, defaultState, type LabState, stateOf, viewNames } from './state.ts';

const machines = fc.record({
  profile: fc.constantFrom('connectx3-qdr', 'connectx3-fdr', 'gen5-x16-what-if'),
  set: fc.dictionary(
    fc.constantFrom('hca.mttCacheLines', 'wire.speed', 'pcie.iommu.isEnabled'),
    fc.oneof(fc.nat(), fc.constantFrom('FDR', 'QDR'), fc.boolean()),
    { noNullPrototype: true },
  ),
  seed: fc.integer({ min: 0, max: 0xffff_ffff }),
});

const states: fc.Arbitrary<LabState> = fc.record({
  view: fc.constantFrom(...viewNames),
  machine: machines,
  other: fc.option(machines, { nil: undefined }),
  message: fc.record({
    verb: fc.constantFrom(...labVerbs),
    sizeBytes: fc.integer({ min: 1, max: 65_536 }),
    mtuBytes: fc.constantFrom(0, 256, 512, 1024, 2048, 4096),
    inlineBytes: fc.integer({ min: 0, max: 512 }),
  }),
  scenario: fc.constantFrom(...scenarioNames),
  network: fc.constantFrom(...labNetworks),
  isWarm: fc.boolean(),
  posted: fc.option(
    fc.record({ node: fc.constantFrom(0, 1), ordinal: fc.nat(9_999_999) }, { noNullPrototype: true }),
    { nil: undefined },
  ),
  atPs: fc.integer({ min: -1_000_000, max: 100_000_000_000 }),
  block: fc.constantFrom('', 'hca0 requester', 'hca1 mtt cache', 'host0 core 0'),
  event: fc.option(fc.nat(10_000_000), { nil: undefined }),
  span: fc.constantFrom(...comparePaths),
  program: fc.oneof(
    fc.record({ name: fc.constantFrom('rpc', 'ring') }),
    fc.record({ text: fc.string({ unit: 'grapheme', maxLength: 2000 }) }),
  ),
  fault: fc.constantFrom('', 'packet=corrupted,nth=1,node=1', 'interrupt=lost,nth=3'),
  breakpoints: fc
    .uniqueArray(fc.integer({ min: 1, max: 99_999 }), { maxLength: 20 })
    .map((lines) => lines.toSorted((left, right) => left - right)),
  reached: fc.option(
    fc.record({ node: fc.constantFrom(0, 1), ordinal: fc.nat(999_999_999) }, { noNullPrototype: true }),
    { nil: undefined },
  ),
  ranPs: fc.nat(1_000_000_000),
  stepPs: fc.integer({ min: 1, max: 1_000_000_000 }),
  fabric: fc.record({
    topology: fc.constantFrom('star:8', 'leaf-spine:2x4:16', '0-2,1-2'),
    pattern: fc.constantFrom(...fabricTraffic),
    sizeBytes: fc.integer({ min: 1, max: 1_048_576 }),
    messages: fc.integer({ min: 1, max: 10_000 }),
  }),
  hosts: fc.constantFrom<1 | 2>(1, 2),
  side: fc.constantFrom(0, 1),
});

describe('the address of a picture', () => {
  it('opens as the same picture, and rejects nothing', async () => {
    await fc.assert(
      fc.asyncProperty(states, async (state) => {
        expect(await stateOf(`#${await addressOf(state)}`)).toEqual({ state, refused: [] });
      }),
      { numRuns: 200 },
    );
  });

  it('is empty for the first picture', async () => {
    expect(await addressOf(defaultState)).toBe('');
  });

  it.each([
    ['view=nothing', 'view=nothing'],
    ['size=0', 'size=0'],
    ['size=1e3', 'size=1e3'],
    ['mtu=300', 'mtu=300'],
    ['seed=4294967296', 'seed=4294967296'],
    ['set=hca.mttCacheLines', 'set=hca.mttCacheLines'],
    ['event=-1', 'event=-1'],
    ['posted=2:0', 'posted=2:0'],
    ['reached=0:', 'reached=0:'],
    ['breaks=0', 'breaks=0'],
    ['breaks=3,,4', 'breaks=3,,4'],
    ['block=<script>', 'block=<script>'],
    ['fault=<script>', 'fault=<script>'],
    ['text=!!!', 'text=!!!…'],
    ['topology=<script>', 'topology=<script>'],
    ['traffic=none', 'traffic=none'],
    ['sice=64', 'sice=64'],
  ])('leaves out %s, and names it', async (address, refused) => {
    expect(await stateOf(address)).toEqual({ state: defaultState, refused: [refused] });
  });

  it('shows a second machine that states only its differences', async () => {
    const { state, refused } = await stateOf('other.set=wire.cableMetres:1000&side=B');
    expect(refused).toEqual([]);
    expect(state.other).toEqual({ ...defaultState.machine, set: { 'wire.cableMetres': 1000 } });
  });

  it('names an unknown program', async () => {
    const { state, refused } = await stateOf('view=program&program=nix');
    expect(state.program).toEqual(defaultState.program);
    expect(refused).toEqual(['program=nix']);
  });

  it('does not unpack more than a program may have', async () => {
    const text = 'x'.repeat(200_001);
    const address = await addressOf({ ...defaultState, program: { text } });
    expect(address.length).toBeLessThan(2000);
    const { state, refused } = await stateOf(address);
    expect(state.program).toEqual(defaultState.program);
    expect(refused).toHaveLength(1);
  });
});
