import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Makes Gemini CLI use GEMINI_API_KEY also where GOOGLE_GEMINI_BASE_URL is set, by its settings in `home`
 * (GEMINI_CLI_HOME). From that variable alone it selects a way to sign in that it then refuses.
 */
export function useApiKey(home: string): void {
  const folder = join(home, '.gemini');
  mkdirSync(folder, { recursive: true });
  const settings = { security: { auth: { selectedType: 'gemini-api-key' } } };
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings));
}
