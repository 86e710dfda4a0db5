/**
 * Management datagrams of any content, by MAD_IFC: each is answered, or refused with a status, and the port continues.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CommandStatus } from '../../../abi/command-status.ts';
import { MadClass, MadMethod, mad, SmpAttribute, smp } from '../../../abi/mad.ts';
import { broughtUp } from '../testing/bring-up.ts';

const statuses: readonly number[] = [CommandStatus.OK, CommandStatus.BAD_PKT, CommandStatus.BAD_PARAM];
/** `npm run fuzz` sets them. */
const count = Number(process.env['HOSTILE_PACKETS'] ?? 1500);
const seed = Number(process.env['HOSTILE_SEED'] ?? 19);
const MAD_BYTES = 256;

const datagrams = fc.record({
  bytes: fc.uint8Array({ minLength: MAD_BYTES, maxLength: MAD_BYTES }),
  managementClass: fc.oneof(fc.constantFrom(...Object.values(MadClass)), fc.nat(255)),
  method: fc.oneof(fc.constantFrom(...Object.values(MadMethod)), fc.nat(255)),
  attributeId: fc.oneof(
    fc.constantFrom(...Object.values(SmpAttribute)),
    fc.constantFrom(1, 0x12, 0x1d),
    fc.nat(0xffff),
  ),
  attributeModifier: fc.oneof(fc.nat(3), fc.integer({ min: 0, max: 0xffff_ffff })),
  isRandom: fc.boolean(),
});

it('IBTA 13.4, 14.2, 16.1: any MAD has an answer, and the next one, too', { timeout: 24 * 3600_000 }, () => {
  const bench = broughtUp();
  fc.assert(
    fc.property(datagrams, ({ bytes, isRandom, ...fields }) => {
      const inBox = bytes.slice();
      if (!isRandom) inBox.set(mad.encode({ baseVersion: 1, classVersion: 1, ...fields }).subarray(0, 24));
      const { status, outBox } = bench.command('MAD_IFC', { inBox, outBytes: MAD_BYTES, inputModifier: 1 });
      expect(statuses).toContain(status);
      if (status === CommandStatus.OK) expect(outBox.length).toBe(MAD_BYTES);
    }),
    { numRuns: count, seed },
  );
  const ask = { baseVersion: 1, managementClass: MadClass.SUBN_LID_ROUTED, classVersion: 1 } as const;
  const inBox = smp.encode({ ...ask, method: MadMethod.GET, attributeId: SmpAttribute.NODE_DESC });
  expect(bench.command('MAD_IFC', { inBox, outBytes: MAD_BYTES, inputModifier: 1 }).status).toBe(
    CommandStatus.OK,
  );
});
