import { describe, expect, it } from 'vitest';
import { eqDoorbellOffset } from '../abi/bar-map.ts';
import { icmPageBytes, initHca } from '../abi/index.ts';
import { swap32 } from '../base/bytes.ts';
import { defaultsOf } from '../base/parameter.ts';
import { Driver } from './driver.ts';
import { type DriverConfig, driverParameters } from './parameters.ts';
import { TestMachine } from './testing.ts';
import { goldenCommands, goldenDevice, inputOf } from './testing-answers.ts';

/** Table and queue sizes of Linux, with which the captures were made. */
const linuxSizes: DriverConfig = { ...defaultsOf(driverParameters), logMcgs: 13, completionEqEntries: 65536 };

async function probed(config = linuxSizes): Promise<{ machine: TestMachine; driver: Driver }> {
  const machine = new TestMachine();
  machine.script = goldenDevice;
  const driver = new Driver(machine.platform, config);
  await driver.probe(machine.cpu);
  return { machine, driver };
}

describe('probe', () => {
  const captured = goldenCommands('a-probe');

  it('golden captures: issues the commands of Linux in its order, up to the port attributes', async () => {
    const { machine } = await probed();
    // The capture continues with mlx4_ib, whose caches and management QPs this driver does not have.
    const shared = captured.findIndex(({ input }) =>
      input?.startsWith('010101010000000000000000000000000017'),
    );
    expect(shared).toBe(66);
    expect(machine.names().slice(0, shared)).toEqual(captured.slice(0, shared).map(({ op }) => op));
    expect(machine.names().slice(shared)).toEqual(['INIT_PORT', 'QUERY_HCA', 'MAD_IFC']);
  });

  it('golden captures, observation 11: posts each of them with the modifiers, event bit, toggle and token of Linux', async () => {
    const { machine } = await probed();
    const posted = machine.commands.slice(0, 66).map((command) => ({
      opcodeModifier: command.opcodeModifier,
      inputModifier: `0x${command.inputModifier.toString(16)}`,
      event: command.event,
      toggle: command.toggle,
      token: `0x${command.token.toString(16)}`,
    }));
    expect(posted).toEqual(
      captured.slice(0, 66).map((line) => ({
        opcodeModifier: line.op_mod,
        inputModifier: line.in_mod,
        event: line.event,
        toggle: line.t,
        token: line.token,
      })),
    );
  });

  it('golden captures: writes the same mailboxes, except for addresses of donated pages and translations', async () => {
    const { machine } = await probed();
    for (const [at, line] of captured.slice(0, 66).entries()) {
      if (line.input === undefined) continue;
      const expected = inputOf(line);
      const actual = machine.commands[at]!.input;
      const masked = (bytes: Uint8Array): string => {
        const copy = Buffer.from(bytes);
        // The second half of a MAP entry is a host address, except for its size in the low 6 bits.
        if (line.op.startsWith('MAP_')) copy.fill(0, 8, 15);
        // The allocator chooses where a queue's entries lie in the MTT table.
        if (line.op === 'SW2HW_EQ') copy.fill(0, 0x18, 0x20);
        return copy.toString('hex');
      };
      expect(masked(actual), `command ${at} ${line.op}`).toBe(masked(expected));
    }
  });

  it('golden captures: maps the asynchronous events of Linux and sets the same ICM size', async () => {
    const { machine } = await probed();
    expect(machine.last('MAP_EQ').inParam).toBe(0x1d1f46fen);
    expect(machine.last('SET_ICM_SIZE').inParam).toBe(0x1_1700_4000n);
  });

  it('arms every event queue once with consumer counter 0 before the first event', async () => {
    const { machine } = await probed();
    const first = machine.doorbells.slice(0, 3);
    expect(first.map(({ offset }) => offset)).toEqual([32, 33, 34].map(eqDoorbellOffset));
    // Bit 31 arms; on a little-endian bus the big-endian dword 0x80000000 is 0x00000080.
    expect(first.map(({ value }) => value)).toEqual([0x80, 0x80, 0x80]);
    // NOP, CONF_SPECIAL_QP, SET_PORT, INIT_PORT, QUERY_HCA and four MAD_IFC were answered by event.
    expect(machine.doorbells.at(-1)!.value).toBe(swap32(0x8000_0000 + 9));
  });

  it('leaves donated memory to the device, except the translations, which it writes itself', async () => {
    const { machine } = await probed();
    const { mttBase, qpcBase } = initHca.decode(machine.last('INIT_HCA').input, 0);
    const isLeft = (icmAddress: bigint): boolean =>
      machine.pagesLeft.has(machine.icmAddress(Number(icmAddress)));
    expect([isLeft(qpcBase), isLeft(mttBase)]).toEqual([true, false]);
    expect(machine.pagesLeft.size).toBeGreaterThan(machine.icmPageCount - 64);
    for (const page of machine.pagesLeft)
      expect(machine.memory.subarray(page, page + icmPageBytes).every((byte) => byte === 0)).toBe(true);
  });

  it('sheet 2.5: rejects a device that another driver owns, and changes nothing', async () => {
    const machine = new TestMachine();
    machine.ownerValue = 1;
    const driver = new Driver(machine.platform);
    await expect(driver.probe(machine.cpu)).rejects.toMatchObject({ code: 'ENODEV' });
    expect(machine.commands).toEqual([]);
    expect(machine.resetCount).toBe(0);
  });

  it.each([
    'RUN_FW',
    'MOD_STAT_CFG',
    'MAP_ICM',
    'INIT_HCA',
    'SW2HW_EQ',
    'MAP_EQ',
    'CONF_SPECIAL_QP',
    'SET_PORT',
  ])('releases everything when %s fails', async (failing) => {
    const machine = new TestMachine();
    machine.script = (command) => (command.name === failing ? { status: 0x03 } : goldenDevice(command));
    const driver = new Driver(machine.platform, linuxSizes);
    await expect(driver.probe(machine.cpu)).rejects.toMatchObject({ code: 'EINVAL' });
    expect(machine.framesTaken).toBe(0);
    expect(machine.icmPageCount).toBe(0);
    expect(machine.ownerValue).toBe(0);
  });

  it('ends with ENOMEM when the host runs out of frames, and releases what it had', async () => {
    const machine = new TestMachine();
    machine.script = goldenDevice;
    machine.framesLeft = 500;
    const driver = new Driver(machine.platform, linuxSizes);
    await expect(driver.probe(machine.cpu)).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(machine.framesTaken).toBe(0);
  });

  it('sheet 3.3: tries fewer virtual lanes while the device says they are too many', async () => {
    const machine = new TestMachine();
    machine.script = (command) => {
      if (command.name !== 'SET_PORT') return goldenDevice(command);
      return command.input[3]! > 0x40 ? { status: 0x40 } : {};
    };
    await new Driver(machine.platform).probe(machine.cpu);
    const asked = machine.commands.filter(({ name }) => name === 'SET_PORT').map(({ input }) => input[3]);
    expect(asked).toEqual([0x80, 0x40]);
  });

  it('sheet 3.3: falls back to the legacy pin when no MSI-X interrupt arrives', async () => {
    const machine = new TestMachine(true);
    machine.script = goldenDevice;
    machine.interruptsWork = false;
    const driver = new Driver(machine.platform);
    await driver.probe(machine.cpu);
    // All queues were created again: two of them, as Linux has without MSI-X, and the NOP was sent twice.
    const names = machine.names();
    expect(names.filter((name) => name === 'NOP')).toHaveLength(2);
    expect(names.filter((name) => name === 'SW2HW_EQ')).toHaveLength(3 + 2);
    expect(names.filter((name) => name === 'HW2SW_EQ')).toHaveLength(3);
    expect(driver.device.completionEqs).toHaveLength(1);
    // One interrupt for each of the nine commands answered by event; the first NOP's was lost.
    expect(machine.legacyClears).toBe(9);
    await driver.remove(machine.cpu);
    expect(machine.framesTaken).toBe(0);
  });

  it('fails when no interrupt arrives and there is no legacy pin', async () => {
    const machine = new TestMachine();
    machine.script = goldenDevice;
    machine.interruptsWork = false;
    const driver = new Driver(machine.platform);
    await expect(driver.probe(machine.cpu)).rejects.toMatchObject({ code: 'EIO' });
    expect(machine.names().filter((name) => name === 'NOP')).toHaveLength(1);
    expect(machine.framesTaken).toBe(0);
  });
});

describe('removal', () => {
  it('golden captures: issues the commands of Linux in its order and releases every frame', async () => {
    const { machine, driver } = await probed();
    machine.commands.length = 0;
    await driver.remove(machine.cpu);
    const captured = goldenCommands('a-remove');
    // The capture first tears down Linux' own interfaces there; ours begins with the last CLOSE_PORT.
    const first = captured.findLastIndex(({ op }) => op === 'CLOSE_PORT');
    const expected = captured.slice(first);
    expect(machine.names()).toEqual(expected.map(({ op }) => op));
    const modifiers = machine.commands.map((command) => command.inputModifier);
    expect(modifiers).toEqual(expected.map((line) => Number(line.in_mod)));
    expect(machine.commands.map(({ opcodeModifier }) => opcodeModifier)).toEqual(
      expected.map((line) => line.op_mod),
    );
    const addresses = machine.commands
      .filter(({ name }) => name === 'UNMAP_ICM')
      .map(({ inParam }) => inParam);
    expect(addresses).toEqual(
      expected.filter(({ op }) => op === 'UNMAP_ICM').map((line) => BigInt(line.in_param)),
    );
    expect(machine.framesTaken).toBe(0);
    expect(machine.ownerValue).toBe(0);
  });

  it('leaves no resource counted', async () => {
    const { machine, driver } = await probed();
    await driver.remove(machine.cpu);
    expect(Object.values(driver.resourceCounts()).every((count) => count === 0)).toBe(true);
  });

  it('can be followed by another probe', async () => {
    const { machine, driver } = await probed();
    await driver.remove(machine.cpu);
    const again = new Driver(machine.platform, linuxSizes);
    await again.probe(machine.cpu);
    expect(machine.resetCount).toBe(2);
    await again.remove(machine.cpu);
    expect(machine.framesTaken).toBe(0);
  });
});
