import { describe, expect, it } from 'vitest';
import { pageWith, readPage, wiresByRoom, wireTables } from './wire-table.ts';

describe.each(Object.entries(wiresByRoom))('the wires in %s/README.md', (room, tables) => {
  it('are those of the tables that connect the blocks', () => {
    expect(readPage(room)).toContain('<!-- wires -->');
    expect(readPage(room)).toBe(pageWith(wireTables(tables), readPage(room)));
  });
});

describe('a table of wires', () => {
  it('leads from the engine of received frames to its bus master and back', () => {
    expect(wireTables(wiresByRoom['hw/nic']!)).toContain(
      '| receiveBusMaster | receiveEngine | receiveEngine |',
    );
  });
});
