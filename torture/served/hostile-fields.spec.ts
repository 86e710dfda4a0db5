import { describe, expect, it } from 'vitest';
import { cqc } from '../../abi/cqc.ts';
import { qpMailbox } from '../../abi/qpc.ts';
import { Random } from '../../sim/index.ts';
import { Draw } from './draw.ts';
import { fieldsOf, spoil } from './hostile-fields.ts';

describe('a context with odd fields', () => {
  it('may be odd in any field, those of nested layouts too', () => {
    const names = fieldsOf(qpMailbox).map(({ name }) => name);
    expect(names).toContain('QP mailbox.optionalParameterMask');
    expect(names).toContain('QP mailbox.context.pd');
    expect(names).toContain('QP mailbox.context.primaryPath.remoteLid');
  });

  it('differs from the legal one in the named fields alone', () => {
    const legal = cqc.encode({ logEntries: 5, uarPage: 200, eqn: 4 });
    const draw = new Draw(new Random(7, 'hostile fields'));
    let single = 0;
    for (let time = 0; time < 400; time++) {
      const box = legal.slice();
      const odd = spoil(draw, cqc, box);
      if (odd.length === 0) continue;
      single++;
      const [before, after] = [cqc.decode(legal), cqc.decode(box)];
      const changed = Object.keys(before).filter(
        (name) => before[name as keyof typeof before] !== after[name as keyof typeof after],
      );
      for (const name of changed) expect(odd).toContain(`CQC.${name}`);
    }
    // 45 of 100 have named odd fields.
    expect(single).toBeGreaterThan(140);
  });

  it('is the same one from the same seed', () => {
    const drawn = (): Uint8Array => {
      const box = cqc.encode({ logEntries: 5 });
      const draw = new Draw(new Random(3, 'hostile fields'));
      for (let time = 0; time < 10; time++) spoil(draw, cqc, box);
      return box;
    };
    expect(drawn()).toEqual(drawn());
  });
});
