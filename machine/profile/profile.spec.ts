import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { configHashOf, configurationOf } from './configuration.ts';
import { profileListing } from './listing.ts';
import { parametersByPath } from './parameter-tree.ts';
import { hasCard, profiles } from './profiles.ts';
import { checkedValue, parsedAssignment } from './values.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-profile-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const messageOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
};

describe('a configuration', () => {
  it('is by default a ConnectX-3 in a Gen3 x8 slot', () => {
    const config = configurationOf();
    expect([config.pcie.link.generation, config.pcie.link.lanes]).toEqual([3, 8]);
    expect(config.hca.coreClockMHz).toBe(427);
    expect(config.wire.speed).toBe('QDR');
  });

  it('has no table of a lane that does not exist', () => {
    const twoLanes = { 'wire.dataVls': '2', 'wire.receiveBufferBytes': 65_536 };
    expect(configurationOf({ set: { ...twoLanes, 'lanes.low.vl1': 192 } }).lanes.low.vl1).toBe(192);
    const asked = [
      { 'lanes.slToVl.sl0': 15 },
      { 'lanes.low.vl0': 0 },
      { 'lanes.highLimit': 255, ...twoLanes, 'hca.capability.linkLayer': 'ethernet' },
      { 'lanes.high.vl2': 1, ...twoLanes },
    ];
    expect(asked.map((set) => messageOf(() => configurationOf({ set })))).toEqual([
      ...['lanes.slToVl.sl0 is 15', 'lanes.low.vl0 is 0', 'lanes.highLimit is 255'].map((what) =>
        expect.stringContaining(what),
      ),
      expect.stringContaining('wire.dataVls has 2 lanes, from 0'),
    ]);
  });

  it('is constant, down to each of its groups', () => {
    const config = configurationOf();
    expect(() => Object.assign(config.pcie.link, { lanes: 4 })).toThrow(TypeError);
    expect(() => Object.assign(config, { pcie: {} })).toThrow(TypeError);
  });

  it('applies changes of the profile first, then those of the caller', () => {
    const config = configurationOf({ profile: 'gen5-x16-what-if', set: { 'pcie.link.lanes': 4 } });
    expect([config.pcie.link.generation, config.pcie.link.lanes]).toEqual([5, 4]);
  });

  it('is valid for every named profile', () => {
    for (const profile of profiles) {
      const card = hasCard(profile) ? '' : 'connectx3-pro-40gbe+';
      expect(() => configurationOf({ profile: card + profile.name })).not.toThrow();
    }
  });

  it('has defaults within their own ranges', () => {
    for (const [path, parameter] of parametersByPath)
      expect(checkedValue(path, parameter.default), path).toBe(parameter.default);
  });

  it('is that of profiles joined by +, of which the later ones win', () => {
    const { hca, ethernet, switch: own } = configurationOf({ profile: 'connectx3-pro-40gbe+sx1036' });
    expect([hca.capability.linkLayer, ethernet.gigabitsPerSecond]).toEqual(['ethernet', 40]);
    // 230 ns from port to port.
    const { forwarding, latencyNs, portLatencyNs } = own.ethernet;
    expect([forwarding, latencyNs + 2 * portLatencyNs]).toEqual(['cut-through', 230]);
    expect(configurationOf({ profile: 'connectx3-fdr+gen5-x16-what-if' }).wire.speed).toBe('EDR');
    expect(messageOf(() => configurationOf({ profile: 'connectx3-fdr+sx1035' }))).toContain(
      'profile is "sx1035", expected a JSON file or one of',
    );
  });

  it.each(['sx1036', 'sn2700', 'connectx3-fdr+sx1036'])(
    'refuses switches of Ethernet without a card of Ethernet: %s',
    (profile) => {
      const name = profile.split('+').at(-1)!;
      expect(messageOf(() => configurationOf({ profile }))).toContain(
        `profile is "${profile}", expected ${name} joined to the profile of a card with Ethernet`,
      );
      const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };
      expect(configurationOf({ profile, set }).switch.ethernet.forwarding).toBe('cut-through');
    },
  );

  it('joins files to named profiles, and reads a file whose name has a plus', () => {
    const path = file('own+joined.json', '{"values":{"hca.coreClockMHz":500}}');
    const plain = file('joined.json', '{"values":{"hca.coreClockMHz":500}}');
    expect(configurationOf({ profile: path }).hca.coreClockMHz).toBe(500);
    const { hca, wire } = configurationOf({ profile: `connectx3-fdr+${plain}` });
    expect([hca.coreClockMHz, wire.speed]).toEqual([500, 'FDR']);
    expect(messageOf(() => configurationOf({ profile: `connectx3-fdr+${plain}.none` }))).toContain(
      'a readable file',
    );
  });

  it('reads profile files with nested values or whole paths', () => {
    const path = file(
      'own.json',
      '{"extends":"connectx3-fdr","values":{"pcie":{"link":{"lanes":4}},"hca.coreClockMHz":500}}',
    );
    const config = configurationOf({ profile: path });
    expect([config.wire.speed, config.pcie.link.lanes, config.hca.coreClockMHz]).toEqual(['FDR', 4, 500]);
  });
});

describe('a wrong choice is rejected in one line that names it', () => {
  it('for an unknown parameter, with the nearest', () => {
    expect(messageOf(() => configurationOf({ set: { 'pcie.link.lane': 8 } }))).toBe(
      'parameter is "pcie.link.lane", expected a known one; did you mean pcie.link.lanes?',
    );
    expect(messageOf(() => parsedAssignment('coreClockMHz=1'))).toContain('did you mean hca.coreClockMHz?');
    expect(messageOf(() => parsedAssignment('zebra=1'))).toBe(
      'parameter is "zebra", expected a known one (hca profiles)',
    );
  });

  it('for values out of range or of another type', () => {
    expect(messageOf(() => parsedAssignment('pcie.link.lanes=12'))).toBe(
      'pcie.link.lanes is 12, expected a power of two from 1 to 16 lanes',
    );
    expect(messageOf(() => parsedAssignment('wire.speed=XDR'))).toContain(
      'wire.speed is "XDR", expected one of SDR',
    );
    expect(messageOf(() => parsedAssignment('driver.useMsix=1'))).toContain('expected true or false');
    expect(messageOf(() => parsedAssignment('hca.coreClockMHz=fast'))).toContain(
      'hca.coreClockMHz is "fast"',
    );
    expect(messageOf(() => parsedAssignment('hca.coreClockMHz'))).toBe(
      '--set is "hca.coreClockMHz", expected path=value',
    );
  });

  it('for a FIFO that the credits of its port would overrun', () => {
    const set = { 'pcie.function.requestFifoDepth': 79 };
    expect(messageOf(() => configurationOf({ set }))).toBe(
      'pcie.function.requestFifoDepth is 79, expected at least the header credits of pcie.endpointPort: 64 posted and 16 non-posted',
    );
    expect(
      configurationOf({ set: { ...set, 'pcie.endpointPort.postedHeaders': 63 } }).pcie.function
        .requestFifoDepth,
    ).toBe(79);
  });

  it('for profiles that do not exist or cannot be read', () => {
    expect(messageOf(() => configurationOf({ profile: 'conectx3-fdr' }))).toContain(
      'did you mean connectx3-fdr?',
    );
    expect(messageOf(() => configurationOf({ profile: './none.json' }))).toContain(
      'a readable file (ENOENT)',
    );
    expect(messageOf(() => configurationOf({ profile: file('a.json', '{') }))).toContain(
      'a file of valid JSON',
    );
    expect(messageOf(() => configurationOf({ profile: file('b.json', '{"set":{}}') }))).toContain(
      'the keys extends, doc and values',
    );
    expect(
      messageOf(() =>
        configurationOf({ profile: file('c.json', '{"values":{"pcie":{"link":{"lanes":"x"}}}}') }),
      ),
    ).toContain('pcie.link.lanes is "x"');
  });

  it('for parameters that contradict each other', () => {
    expect(messageOf(() => configurationOf({ set: { 'pcie.enumeration.maxPayloadBytes': 512 } }))).toContain(
      'at most pcie.link.maxPayloadBytes (256)',
    );
    expect(messageOf(() => configurationOf({ set: { 'machine.nodeCount': 3 } }))).toContain('an even number');
    expect(messageOf(() => configurationOf({ set: { 'wire.creditReturnBytes': 16_384 } }))).toContain(
      'wire.creditReturnBytes is 16384, expected at most 12160',
    );
  });
});

describe('the configuration hash', () => {
  it('depends only on values', () => {
    const hash = configHashOf(configurationOf());
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(configHashOf(configurationOf({ set: { 'pcie.link.lanes': 8 } }))).toBe(hash);
    expect(configHashOf(configurationOf({ set: { 'pcie.link.lanes': 4 } }))).not.toBe(hash);
  });
});

describe('the listing', () => {
  it('has unit, default, range, source and meaning of every parameter', () => {
    const { parameters } = profileListing();
    expect(parameters.length).toBe(parametersByPath.size);
    for (const row of parameters) {
      expect(row.source, row.path).not.toBe('');
      expect(row.doc, row.path).not.toBe('');
    }
    expect(parameters.find(({ path }) => path === 'hca.coreClockMHz')).toMatchObject({
      unit: 'MHz',
      default: 427,
    });
  });
});
