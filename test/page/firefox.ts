/** Firefox without a window, driven by WebDriver BiDi. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, launch } from 'puppeteer-core';
import { environmentOf } from './tree.ts';

/** No server is contacted. */
const preferences = {
  'browser.newtabpage.activity-stream.feeds.system.topsites': false,
  'browser.newtabpage.enabled': false,
  'services.settings.server': 'data:,',
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
};

/** The browser, to be driven: closed, and its profile removed, at the end of its scope. */
export async function drivenFirefox(tree: string): Promise<AsyncDisposable & { readonly browser: Browser }> {
  const home = mkdtempSync(join(tmpdir(), 'hca-firefox-'));
  const browser = await launch({
    browser: 'firefox',
    executablePath: join(tree, 'usr/lib/firefox-esr/firefox-esr'),
    timeout: 120_000,
    extraPrefsFirefox: preferences,
    env: environmentOf(tree, home),
  });
  return {
    browser,
    async [Symbol.asyncDispose]() {
      await browser.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
