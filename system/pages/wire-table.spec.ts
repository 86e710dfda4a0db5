import { describe, expect, it } from 'vitest';
import { pageWith, readPage, wiresByRoom, wireTable } from './wire-table.ts';

describe.each(Object.entries(wiresByRoom))('the wires in %s/README.md', (room, wires) => {
  it('are those of the table that connects the blocks', () => {
    expect(readPage(room)).toContain('<!-- wires -->');
    expect(readPage(room)).toBe(pageWith(wireTable(wires), readPage(room)));
  });
});

describe('a table of wires', () => {
  it('leads from the doorbell to the requester by the scheduler', () => {
    expect(wireTable(wiresByRoom['hw/hca']!)).toContain('| scheduler | requester |');
  });

  it('leads from the engine of received frames to its bus master and back', () => {
    expect(wireTable(wiresByRoom['hw/nic']!)).toContain(
      '| receiveBusMaster | receiveEngine | receiveEngine |',
    );
  });
});
