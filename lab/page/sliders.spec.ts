/** The sliders of the lab: each changes an existing parameter, to valid values. */
import { describe, expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { estimate, parameters } from '../worker/closed-form.ts';
import { sliders, valuesOf } from './sliders.ts';

describe('the sliders', () => {
  const message = { verb: 'write', sizeBytes: 4096, mtuBytes: 0, inlineBytes: 0 } as const;

  it.each(sliders.map((slider) => [slider.path, slider] as const))(
    '%s accepts all its values',
    (path, slider) => {
      const [parameter] = parameters('connectx3-qdr', [path]);
      const values = valuesOf(slider, parameter!.default);
      expect(values).toContain(parameter!.default);
      for (const value of values) expect(() => configurationOf({ set: { [path]: value } })).not.toThrow();
    },
  );

  it('move the closed form: a longer cable takes longer, a faster core less', () => {
    const totalOf = (set: Record<string, number>) =>
      estimate({ profile: 'connectx3-qdr', set, seed: 1 }, message).totalPs;
    expect(totalOf({ 'wire.cableMetres': 1000 })).toBeGreaterThan(totalOf({}));
    expect(totalOf({ 'host.core.clockMHz': 5000 })).toBeLessThan(totalOf({}));
  });

  it('insert other values of an address in order', () => {
    const [clock] = sliders;
    expect(valuesOf(clock!, 2500, 1234)).toEqual([1000, 1234, 1500, 2000, 2500, 3000, 3500, 4000, 5000]);
  });
});
