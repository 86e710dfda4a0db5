import { describe, expect, it } from 'vitest';
import { withWideFields } from './wide-fields.ts';

const zero = 'const wide$zero = new Float64Array(1)[0]!;\n';

describe('wide fields', () => {
  it('begin as floats: those of a wide type, and those of picoseconds', () => {
    expect(
      withWideFields(
        'export class A { address: Wide = 0; #ref: EventRef = 0; nowPs = 0; #endPs: number = 0; }',
      ),
    ).toBe(
      `${zero}export class A { address: Wide = wide$zero; #ref: EventRef = wide$zero; nowPs = wide$zero; #endPs: number = wide$zero; }`,
    );
  });

  it('are no others: integers, fields with another initial value or none, methods, variables', () => {
    const source =
      'class A { address: Wide = 1; count = 0; tag: number = 0; startPs = 1; endPs: number; Ps() { const aPs = 0; } }';
    expect(withWideFields(source)).toBe(source);
  });

  it('begin with zero, not with its negative', async () => {
    const { default: nowPs } = (await import(
      `data:text/javascript,${encodeURIComponent(
        withWideFields('class A { nowPs = 0; }\nexport default new A().nowPs;').replace(']!', ']'),
      )}`
    )) as { default: number };
    expect(Object.is(nowPs, 0)).toBe(true);
  });
});
