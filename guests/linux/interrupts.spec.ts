import { describe, expect, it } from 'vitest';
import { compareVectors, type DeviceVector, parseInterrupts } from './interrupts.ts';

/** Interrupts as printed by Debian's 6.1, with two vectors of the adapter. */
const olderText = `           CPU0       CPU1
  0:         33          0   IO-APIC   2-edge      timer
  4:         12        340   IO-APIC   4-edge      ttyS0
 24:          0          0   PCI-MSI 16384-edge      PCIe PME
 28:          5          7   PCI-MSI 524288-edge      mlx4-async@pci:0000:01:00.0
 29:          0         40   PCI-MSI 524289-edge      mlx4-1@0000:01:00.0
NMI:          0          0   Non-maskable interrupts
`;

/** Interrupts as printed by 6.12. */
const newerText = `           CPU0       CPU1
 28:          5          7 PCI-MSIX-0000:02:00.0   0-edge      mlx4-async@pci:0000:02:00.0
 29:          1          0 PCI-MSIX-0000:02:00.0   1-edge      mlx4-1@pci:0000:02:00.0
 30:          1          0 PCI-MSI-0000:00:1f.2    0-edge      ahci[0000:00:1f.2]
`;

const counts = (...byVector: number[]): Map<number, DeviceVector> =>
  new Map(byVector.map((raised, vector) => [vector, { raised, unservedQueues: 0 }]));

describe('interrupts as the guest counted them', () => {
  it('are summed over processors, their vectors taken from a number shared by all functions', () => {
    expect(parseInterrupts(olderText)).toEqual([
      { function: '0000:01:00.0', vector: 0, name: 'mlx4-async@pci:0000:01:00.0', count: 12 },
      { function: '0000:01:00.0', vector: 1, name: 'mlx4-1@0000:01:00.0', count: 40 },
    ]);
  });

  it('are understood if a kernel numbers the vectors of each function from zero', () => {
    expect(parseInterrupts(newerText).map(({ function: at, vector, count }) => [at, vector, count])).toEqual([
      ['0000:02:00.0', 0, 12],
      ['0000:02:00.0', 1, 1],
    ]);
  });

  it('agree with the device when every vector has the same count', () => {
    const compared = compareVectors(0, parseInterrupts(olderText), counts(12, 40, 0));
    expect(compared.map(({ isEqual }) => isEqual)).toEqual([true, true]);
  });

  it('merge if the device sent one more and no event queue of the vector waits', () => {
    const compared = compareVectors(0, parseInterrupts(olderText), counts(12, 41, 0));
    expect(compared[1]).toMatchObject({
      ...{ vector: 1, deviceCount: 41, guestCount: 40 },
      ...{ isEqual: false, isServed: true },
    });
  });

  it('differ if the device sent one more and an event queue of the vector waits', () => {
    const sent = counts(12, 41, 0).set(1, { raised: 41, unservedQueues: 1 });
    const compared = compareVectors(0, parseInterrupts(olderText), sent);
    expect(compared[1]).toMatchObject({ deviceCount: 41, isEqual: false, isServed: false });
  });

  it('differ if the guest ran a handler more often than the device sent messages', () => {
    const compared = compareVectors(0, parseInterrupts(olderText), counts(12, 39, 0));
    expect(compared[1]).toMatchObject({ deviceCount: 39, guestCount: 40, isServed: false });
  });

  it('differ if the device sent some for a vector without a handler', () => {
    const compared = compareVectors(0, parseInterrupts(olderText), counts(12, 40, 3));
    expect(compared[2]).toMatchObject({
      vector: 2,
      name: '(no handler)',
      guestCount: 0,
      isEqual: false,
      isServed: false,
    });
  });

  it('are not compared if the driver has freed its vectors', () => {
    expect(compareVectors(0, [], counts(12, 40))).toEqual([]);
  });
});
