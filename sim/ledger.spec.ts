import { describe, expect, it } from 'vitest';
import { Ledger } from './ledger.ts';

describe('ledger', () => {
  it('counts by name and sums by the first words of names', () => {
    const ledger = new Ledger();
    const [read, write, other] = ['bus.read.bytes', 'bus.write.bytes', 'busy'].map((name) =>
      ledger.addCounter(name),
    );
    ledger.add(read!, 64);
    ledger.add(write!, 8);
    ledger.add(write!, 8);
    ledger.add(other!, 1000);
    expect(ledger.valueOf(write!)).toBe(16);
    expect(ledger.sumOf('bus')).toBe(80);
    expect(ledger.sumOf('busy')).toBe(1000);
    expect(ledger.toData()).toEqual({ 'bus.read.bytes': 64, 'bus.write.bytes': 16, busy: 1000 });
  });

  it('names the balances that do not hold, with both figures', () => {
    const ledger = new Ledger();
    const [sent, received] = ['sent', 'received'].map((name) => ledger.addCounter(name));
    ledger.addBalance(
      'all that was sent was received',
      () => ledger.sumOf('sent'),
      () => ledger.sumOf('received'),
    );
    ledger.addBalance(
      'nothing is nothing',
      () => 0,
      () => 0,
    );
    ledger.add(sent!, 2);
    ledger.add(received!, 2);
    expect(ledger.imbalances()).toEqual([]);
    ledger.add(sent!, 1);
    expect(ledger.imbalances()).toEqual([{ balance: 'all that was sent was received', left: 3, right: 2 }]);
  });

  it('holds any number of counters, each under a name of its own', () => {
    const ledger = new Ledger();
    const counters = Array.from({ length: 200 }, (_, index) => ledger.addCounter(`c${index}`));
    for (const counter of counters) ledger.add(counter, counter);
    expect(ledger.valueOf(counters[199]!)).toBe(199);
    expect(() => ledger.addCounter('c7')).toThrow('name of a counter is "c7"');
  });
});
