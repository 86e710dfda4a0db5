/** The ports of the system DMA controller as software finds them, compared with the text of the 8237A data sheet. */
import { describe, expect, it } from 'vitest';
import { systemDmaChannelPorts, systemDmaPorts } from '../../abi/nic/index.ts';
import { accessMistakes } from '../../base/testing/register-access.ts';
import { SystemDmaChannel } from './system-dma-channel.ts';
import { SystemDmaPorts } from './system-dma-ports.ts';

function bench() {
  const channels = [0, 1, 2, 3].map(() => new SystemDmaChannel());
  const noted = { atWork: -1, written: 0, cleared: 0 };
  const ports = new SystemDmaPorts(channels);
  ports.connect({
    machine: {
      isAtWork: (channel) => channel === noted.atWork,
      registersWritten: () => noted.written++,
      clear: () => noted.cleared++,
    },
  });
  return { channels, ports, noted };
}

describe('the ports of the system DMA controller', () => {
  it.each([0, 1, 2, 3])('of channel %i behave in every bit as they are declared', async (channel) => {
    const { ports } = bench();
    const bus = {
      read: (offset: number) => ports.read(channel * 0x20 + offset),
      write: (offset: number, value: number) => ports.write(channel * 0x20 + offset, value),
    };
    expect(await accessMistakes(systemDmaChannelPorts.registers, bus)).toEqual([]);
  });

  it('of all channels behave in every bit as they are declared', async () => {
    const { ports } = bench();
    const bus = {
      read: (offset: number) => ports.read(offset),
      write: (offset: number, value: number) => ports.write(offset, value),
    };
    expect(await accessMistakes(systemDmaPorts.registers, bus)).toEqual([]);
  });

  // Port, all ones written, read back: 8237A data sheet, "register description"; wider where abi/nic/system-dma.ts has "own".
  it.each([
    ['MODE', 0x14, 0x0000_01fc],
    ['COMMAND', 0x80, 0x0000_0001],
    ['REQUEST, write only', 0x88, 0],
    ['MASK', 0x8c, 0x0000_000f],
    ['master clear, write only', 0x90, 0],
    ['no port', 0x94, 0xffff_ffff],
  ])('%s at 0x%s', (_name, port, found) => {
    const { ports } = bench();
    ports.write(port, 0xffff_ffff);
    expect(ports.read(port)).toBe(found);
  });

  it('8237A data sheet, status register: clear terminal count and error by a read of STATUS, and leave the requests', () => {
    const { ports, channels, noted } = bench();
    channels[1]!.hasReachedCount = true;
    channels[2]!.fail();
    ports.write(0x8c, 0);
    ports.write(0x88, 1 << 3);
    expect([ports.read(0x84), ports.read(0x84)]).toEqual([0x0000_0482, 0x0000_0080]);
    ports.write(0x84, 0xffff_ffff);
    expect([ports.read(0x84), noted.written]).toEqual([0x0000_0080, 2]);
  });

  it('do not change while their channel is at work', () => {
    const { ports, noted } = bench();
    noted.atWork = 2;
    ports.write(0x48, 7);
    ports.write(0x68, 7);
    expect([ports.read(0x48), ports.read(0x68)]).toEqual([0, 7]);
  });
});
