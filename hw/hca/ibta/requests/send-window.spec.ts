/** Losses in the window of a QP whose PSNs, of 24 bits, wrap (IBTA vol 1, 9.7.1). */
import { describe, expect, it } from 'vitest';
import { SendWindow } from './send-window.ts';

describe('the window of a QP', () => {
  it('knows a loss after half of all PSNs and more have passed without one', () => {
    const { requests } = new SendWindow(8, 0, 0);
    requests.lose(3);
    requests.repeatFromPsn = 4;
    const psns = [4, 4_000_000, 8_000_000, 12_000_000, 16_000_000, (16_000_000 + 4_000_000) & 0xff_ffff];
    for (const psn of psns) {
      requests.settledBefore(psn);
      expect(requests.mayBeLost(psn + 1), `nothing is lost at ${psn}`).toBe(false);
      requests.sentBefore(psn + 5);
      expect(requests.mayBeLost(psn + 1), `lost after ${psn}`).toBe(true);
      expect(requests.mayBeLost(psn + 6)).toBe(false);
    }
  });
});
