/** Expected values are those of SONiC's formula, computed apart: frames of 9216 bytes, 1.98e8 m/s, no time in the ports. */
import { expect, it } from 'vitest';
import { defaultsOf } from '../../base/index.ts';
import { ethernetParameters } from '../../wire/index.ts';
import { headroomBytesOf, switchHeadroomBytesOf } from './headroom.ts';

it.each([
  [40, 5, 26_237],
  [40, 100, 31_035],
  [100, 5, 44_279],
  [100, 100, 56_274],
])('at %i Gb/s a cable of %i m needs %i bytes, to within two', (gigabitsPerSecond, metres, bytes) => {
  const config = {
    ...defaultsOf(ethernetParameters),
    gigabitsPerSecond,
    // Header, tag and FCS make it 9216; 1 / 1.98e8 m/s is 5050.5 ps.
    mtuBytes: 9216 - 14 - 4 - 4,
    cablePsPerMetre: 5050.5,
    portLatencyNs: 0,
  };
  expect(Math.abs(headroomBytesOf(config, metres, 0) - bytes)).toBeLessThanOrEqual(2);
});

it('of a switch is that of the cable from which most still arrives, by rate or by the latency of its ports', () => {
  const preset = defaultsOf(ethernetParameters);
  const limits = { headroomMetres: 100, latencyNs: 300 };
  const slow = { ...preset, gigabitsPerSecond: 10, portLatencyNs: 100_000 };
  const fast = { ...preset, gigabitsPerSecond: 40 };
  const ofSlow = headroomBytesOf(slow, 100, 300);
  // Four ports of 100 us in both directions, at 1.25 bytes per ns.
  expect(ofSlow).toBeGreaterThan(500_000);
  expect(switchHeadroomBytesOf([fast, slow, fast], limits)).toBe(ofSlow);
  expect(switchHeadroomBytesOf([fast, { ...fast, gigabitsPerSecond: 10 }], limits)).toBe(
    headroomBytesOf(fast, 100, 300),
  );
  expect(switchHeadroomBytesOf([], limits)).toBe(0);
});

it('has room for what comes while the switch decides: at 40 Gb/s 5 bytes for each ns of its latency', () => {
  const config = { ...defaultsOf(ethernetParameters), gigabitsPerSecond: 40 };
  const added = headroomBytesOf(config, 100, 1300) - headroomBytesOf(config, 100, 300);
  expect(Math.abs(added - 5000)).toBeLessThanOrEqual(1);
});
