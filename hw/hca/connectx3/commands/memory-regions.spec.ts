import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { keyOfIndexForm } from '../../../../abi/keys.ts';
import { MptStatus, mpt } from '../../../../abi/mpt.ts';
import { writeMttHeader } from '../../../../abi/mtt.ts';
import { type Initial, viewOf } from '../../../../base/index.ts';
import { broughtUp, firstMptIndex, icmBase, icmHostBase, must } from '../../testing/bring-up.ts';

const { OK, BAD_INDEX, BAD_RESOURCE, BAD_RES_STATE, BAD_PARAM, ICM_ERROR, REG_BOUND } = CommandStatus;
const index = firstMptIndex;
const pageAddress = icmHostBase + icmBase.dmpt + index * 64;
const region = mpt.encode({
  status: MptStatus.SOFTWARE,
  isRegion: 1,
  localReadEnabled: 1,
  keyIndexForm: index,
  pd: 5,
  startAddress: 0x7000_0000n,
  lengthBytes: 8192n,
  logPageSize: 12,
});

describe('MPT commands', () => {
  it('sheet 3.15: store the entry in the donated page, owned by hardware', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    const stored = mpt.decode(bench.memory.read(pageAddress, 64));
    expect(stored).toEqual({ ...mpt.decode(region), status: MptStatus.VALID });
    expect(bench.dataPath.calls).toEqual([`mptChanged ${index}`]);
  });

  it.each(['HW2SW_MPT', 'SYNC_TPT', 'INVALIDATE_PAGES'] as const)(
    'sheet 3.15: make the device forget, then outlast what it had begun: %s',
    (name) => {
      const bench = broughtUp();
      must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
      bench.dataPath.isFenceOpen = false;
      bench.post(name, { inputModifier: name === 'HW2SW_MPT' ? index : 0, opcodeModifier: 1 });
      bench.run(100_000);
      const forgets = {
        HW2SW_MPT: `mptChanged ${index}`,
        SYNC_TPT: 'translationChanged',
        INVALIDATE_PAGES: 'pagesChanged',
      };
      expect(bench.dataPath.calls.slice(1)).toEqual([forgets[name], 'beginFence']);
      expect(bench.control.processor.isIdle).toBe(false);
      bench.dataPath.isFenceOpen = true;
      bench.run();
      expect(bench.control.processor.isIdle).toBe(true);
    },
  );

  it('sheet 3.15: keep an entry free that was passed as free', () => {
    const bench = broughtUp();
    const inBox = region.slice();
    mpt.fields.status.set(viewOf(inBox), 0, MptStatus.FREE);
    must(bench, 'SW2HW_MPT', { inBox, inputModifier: index });
    expect(mpt.decode(bench.memory.read(pageAddress, 64)).status).toBe(MptStatus.FREE);
  });

  it('sheet 3.15: change only the ownership nibble when the entry goes back to software', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    must(bench, 'HW2SW_MPT', { inputModifier: index, opcodeModifier: 1 });
    expect(bench.memory.read(pageAddress, 64)).toEqual(region); // which software passed with nibble 0xf
    expect(bench.command('HW2SW_MPT', { inputModifier: index, opcodeModifier: 1 }).status).toBe(
      BAD_RES_STATE,
    );
  });

  it('sheet 3.15: return the entry as it was with opcode modifier 0', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    const { outBox } = must(bench, 'HW2SW_MPT', { inputModifier: index, outBytes: 64 });
    expect(mpt.decode(outBox).status).toBe(MptStatus.VALID);
  });

  it('sheet 3.15: let a driver re-register in the page: edit, clear the nibble, SYNC_TPT, and take it back later', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    must(bench, 'HW2SW_MPT', { inputModifier: index, opcodeModifier: 1 });
    bench.memory.write(pageAddress + 0x0f, new Uint8Array([9])); // PD 9
    bench.memory.write(pageAddress, new Uint8Array([0]));
    must(bench, 'SYNC_TPT');
    expect(bench.dataPath.calls.slice(-2)).toEqual(['translationChanged', 'beginFence']);
    expect(mpt.decode(must(bench, 'QUERY_MPT', { inputModifier: index, outBytes: 64 }).outBox).pd).toBe(9);
    expect(bench.command('HW2SW_MPT', { inputModifier: index, opcodeModifier: 1 }).status).toBe(OK);
    expect(bench.command('SW2HW_MPT', { inBox: region, inputModifier: index }).status).toBe(OK);
  });

  it('sheet 3.15: refuse to take back a region with bound windows, and leave it', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    bench.memory.write(pageAddress + 0x27, new Uint8Array([1])); // bound windows, as the device counts them
    expect(bench.command('HW2SW_MPT', { inputModifier: index, opcodeModifier: 1 }).status).toBe(REG_BOUND);
    expect(mpt.decode(bench.memory.read(pageAddress, 64)).status).toBe(MptStatus.VALID);
  });

  it('IBTA 10.6.7: take a window of either type in its first state only', () => {
    const create = (fields: Initial<typeof mpt>): number => {
      const bench = broughtUp();
      const inBox = mpt.encode({ keyIndexForm: index, pd: 3, ...fields });
      return bench.command('SW2HW_MPT', { inBox, inputModifier: index }).status;
    };
    expect(create({ status: MptStatus.VALID })).toBe(OK);
    expect(create({ status: MptStatus.FREE, isBoundToQp: 1 })).toBe(OK);
    expect(create({ status: MptStatus.FREE })).toBe(BAD_PARAM);
    expect(create({ status: MptStatus.VALID, isBoundToQp: 1 })).toBe(BAD_PARAM);
    expect(create({ status: MptStatus.VALID, lengthBytes: 8n })).toBe(BAD_PARAM);
    expect(create({ status: MptStatus.VALID, lkey: 0x1234 })).toBe(BAD_PARAM);
  });

  it('IBTA 10.6.7.2: count one window less when a bound one is deallocated', () => {
    const bench = broughtUp();
    const windowIndex = index + 1;
    const key = keyOfIndexForm(index);
    const [count, ofWindow] = [pageAddress + 0x27, pageAddress + 64];
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    const window = mpt.encode({ status: MptStatus.FREE, isBoundToQp: 1, keyIndexForm: windowIndex, pd: 3 });
    must(bench, 'SW2HW_MPT', { inBox: window, inputModifier: windowIndex });
    bench.memory.write(count, new Uint8Array([2])); // The count after two binds.
    bench.memory.write(ofWindow + 0x20, Uint8Array.of(key >>> 24, key >>> 16, key >>> 8, key));
    must(bench, 'HW2SW_MPT', { inputModifier: windowIndex, opcodeModifier: 1 });
    expect(bench.memory.read(count, 1)[0]).toBe(1);
    expect(mpt.decode(bench.memory.read(ofWindow, 64))).toMatchObject({
      status: MptStatus.SOFTWARE,
      lkey: 0,
    });
  });

  it('wait until no work request changes entries', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    bench.dataPath.isMptFree = false;
    bench.post('HW2SW_MPT', { inputModifier: index, opcodeModifier: 1 });
    bench.run(100_000);
    expect(bench.control.processor.isIdle).toBe(false);
    bench.dataPath.isMptFree = true;
    bench.run();
    expect(bench.control.processor.isIdle).toBe(true);
    expect(bench.dataPath.calls.at(-1)).toBe('releaseMpts');
  });

  it('let go of the entries when a command is refused', () => {
    const bench = broughtUp();
    expect(bench.command('HW2SW_MPT', { inputModifier: 300, opcodeModifier: 1 }).status).toBe(BAD_RES_STATE);
    expect(bench.dataPath.calls).toEqual(['releaseMpts']);
  });

  it('sheet 3.2: refuse indices that are taken, reserved, outside the table, unknown, or not mapped', () => {
    const bench = broughtUp();
    must(bench, 'SW2HW_MPT', { inBox: region, inputModifier: index });
    const create = (inputModifier: number) =>
      bench.command('SW2HW_MPT', { inBox: region, inputModifier }).status;
    expect(create(index)).toBe(BAD_RES_STATE);
    expect(create(255)).toBe(BAD_RESOURCE);
    expect(create(2 ** 16)).toBe(BAD_INDEX);
    expect(create(4096)).toBe(ICM_ERROR); // 64 bytes each: 4096 entries in a chunk
    expect(bench.command('HW2SW_MPT', { inputModifier: 300, opcodeModifier: 1 }).status).toBe(BAD_RES_STATE);
    expect(bench.command('QUERY_MPT', { inputModifier: 300 }).status).toBe(BAD_RES_STATE);
  });
});

describe('MTT commands', () => {
  it('sheet 3.15: write entries where contexts will look for them, over a page edge, and read them back', () => {
    const bench = broughtUp();
    const entries = Uint8Array.from({ length: 24 }, (_, at) => at + 1);
    const inBox = new Uint8Array(40);
    inBox.set(writeMttHeader.encode({ mttAddress: 4080n }), 0);
    inBox.set(entries, 16);
    must(bench, 'WRITE_MTT', { inBox, inputModifier: 3 });
    expect(bench.memory.read(icmHostBase + icmBase.mtt + 4080, 24)).toEqual(entries);
    expect(bench.dataPath.calls).toEqual(['translationChanged']);
    const { outBox } = must(bench, 'READ_MTT', { inParam: 4080, inputModifier: 3, outBytes: 40 });
    expect(outBox).toEqual(inBox);
  });

  it('refuse no entries, too many, and a place that is not mapped', () => {
    const bench = broughtUp();
    const at = (mttAddress: bigint) => writeMttHeader.encode({ mttAddress });
    expect(bench.command('WRITE_MTT', { inBox: at(0n), inputModifier: 0 }).status).toBe(BAD_PARAM);
    expect(bench.command('WRITE_MTT', { inBox: at(0n), inputModifier: 511 }).status).toBe(BAD_PARAM);
    expect(bench.command('WRITE_MTT', { inBox: at(4n), inputModifier: 1 }).status).toBe(BAD_PARAM);
    expect(bench.command('WRITE_MTT', { inBox: at(262_136n), inputModifier: 2 }).status).toBe(ICM_ERROR);
    expect(bench.command('WRITE_MTT', { inBox: at(262_136n), inputModifier: 1 }).status).toBe(OK);
  });
});
