/** VitePress reads its configuration from this folder. */
export { siteConfig as default } from '../site-config.ts';
