"""Who may come in, by which way, and with which headers every answer leaves."""

import httpx
import pytest
from markupsafe import escape

from questree.service.door import cookie_of

TOKEN = "a-token-that-is-long-enough"
ASKED = {"question": "Was Thomas Mann born before Franz Kafka?"}


@pytest.fixture
def guarded(make_service, tap, visit):
    tap.let(10**6)
    return visit(make_service(), TOKEN, host="questions.example")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://elsewhere.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "rebound.example", "origin": "http://rebound.example"},
    ],
)
@pytest.mark.parametrize("path", ["/ask", "/questions", "/v1/chat/completions", "/questions/x/stop"])
def test_no_page_of_elsewhere_asks(client, path, headers, tap):
    assert client.post(path, json=ASKED, headers=headers).status_code == 403
    assert tap.asked == 0


def test_a_link_from_elsewhere_leads_here(client):
    assert client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status_code == 200


def test_our_own_page_asks(client):
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert client.post("/questions", data=ASKED, headers=headers, follow_redirects=False).status_code == 303


@pytest.mark.parametrize("path", ["/", "/openapi.json", "/questions/x", "/questions/x.json", "/v1/models", "/api"])
def test_without_the_token_nothing_is_told(guarded, path):
    for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"questree-80={cookie_of('wrong')}"}):
        assert guarded.get(path, headers=headers).status_code == 401
    assert guarded.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code != 401


def test_whether_the_server_lives_is_told_without_the_token(guarded):
    assert guarded.get("/health").json() == {"status": "ok"}
    assert guarded.head("/health").status_code == 200
    assert "/health" in guarded.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()["paths"]


def test_a_browser_brings_the_token_once(guarded):
    asked = guarded.get("/", headers={"accept": "text/html"})
    assert (asked.url.path, asked.status_code) == ("/login", 200)
    assert guarded.post("/login", data={"token": "wrong"}).status_code == 401
    entered = guarded.post("/login", data={"token": TOKEN}, follow_redirects=False)
    (cookie,) = entered.headers.get_list("set-cookie")
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie  # a browser would not bring it back by http
    assert guarded.get("/").status_code == 200
    assert guarded.post("/ask", json=ASKED).json()["answer"] == "yes"
    assert guarded.post("/ask", json=ASKED, headers={"origin": "http://elsewhere.example"}).status_code == 403


def test_what_can_be_got_can_be_asked_for_without_its_content(make_service, serve):
    address = serve(make_service())
    for path in ("/", "/api", "/v1/models", "/health"):
        asked = httpx.head(address + path)
        assert (asked.status_code, asked.content) == (200, b"")
        assert asked.headers["content-length"] == httpx.get(address + path).headers["content-length"]
    assert httpx.head(f"{address}/questions/x").status_code == 404
    assert httpx.head(f"{address}/ask").status_code == 405


def test_whoever_brings_the_token_gets_the_page_that_was_wanted(guarded):
    asked = guarded.get("/questions/none?x=1&y=%20", headers={"accept": "text/html"})
    assert '<input type="hidden" name="then" value="/questions/none?x=1&amp;y=%20">' in asked.text
    wanted = {"then": "/questions/none?x=1&y=%20"}
    assert 'value="/questions/none?x=1&amp;y=%20"' in guarded.post("/login", data={"token": "wrong", **wanted}).text
    entered = guarded.post("/login", data={"token": TOKEN, **wanted}, follow_redirects=False)
    assert entered.headers["location"] == "/questions/none?x=1&y=%20"


@pytest.mark.parametrize(
    "then", ["//elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example", "/\t/else", ""]
)
def test_the_token_leads_to_no_other_server(guarded, then):
    entered = guarded.post("/login", data={"token": TOKEN, "then": then}, follow_redirects=False)
    assert httpx.URL("http://questions.example/login").join(entered.headers["location"]).host == "questions.example"
    assert not entered.headers["location"].startswith(("//", "/\\"))


def test_behind_a_proxy_with_tls_the_cookie_is_secure_and_addresses_are_the_proxy_s(make_service, tap, serve):
    tap.let(10**6)
    proxy = {"host": "questions.example", "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7"}
    own = {"origin": "https://questions.example", "sec-fetch-site": "same-origin"}
    with httpx.Client(base_url=serve(make_service(), TOKEN, behind_proxy=True), headers=proxy) as browser:
        entered = browser.post("/login", data={"token": TOKEN}, headers=own)
        cookie = entered.headers["set-cookie"]
        assert "Secure" in cookie
        asked = browser.post("/ask", json=ASKED, headers=own | {"cookie": cookie.partition(";")[0]})
        assert asked.json()["permalink"].startswith("https://questions.example/questions/")


@pytest.mark.parametrize(("behind_proxy", "status"), [(False, 429), (True, 303)])
def test_a_client_that_names_another_address_has_no_more_questions(behind_proxy, status, make_service, serve):
    address = serve(make_service(per_client=1), behind_proxy=behind_proxy)
    named = [{"x-forwarded-for": f"192.0.2.{number}"} for number in range(2)]
    replies = [httpx.post(f"{address}/questions", data=ASKED, headers=headers).status_code for headers in named]
    assert replies == [303, status]


def test_a_cookie_of_another_server_keeps_ours_from_nothing(guarded):
    brought = f'prefs={{"a": 1}}; questree-81={cookie_of("theirs")}; questree-80={cookie_of(TOKEN)}'
    assert guarded.get("/", headers={"cookie": brought}).status_code == 200
    assert guarded.get("/", headers={"cookie": "questree-80=\xe9".encode("latin-1")}).status_code == 401


@pytest.mark.parametrize("path", ["/", "/static/live.js", "/questions/x", "/v1/models", "/openapi.json", "/nowhere"])
def test_every_answer_forbids_scripts_and_frames(client, path):
    headers = client.get(path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/questions/x", 404, "not_found"),
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/static/nowhere.css", 404, "not_found"),
        ("PUT", "/questions", 405, "method_not_allowed"),
        ("GET", "/questions/x/events?after=x", 400, "invalid_request"),
    ],
)
def test_what_cannot_be_done_is_said_on_a_page_to_a_browser_and_as_json_to_a_program(
    client, method, path, status, code
):
    page = client.request(method, path, headers={"accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "This cannot be done" in page.text
    said = client.request(method, path)
    assert (said.status_code, said.json()["error"]["code"]) == (status, code)
    assert escape(said.json()["error"]["message"]) in page.text
    assert page.headers.get("allow") == said.headers.get("allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize(
    "path", ["/static/../html.py", "/static/%2e%2e/html.py", "/static/..%2fhtml.py", "/static//etc/passwd"]
)
def test_no_file_outside_is_read(client, path):
    assert client.get(path).status_code == 404


def test_a_request_is_bounded(client):
    assert client.post("/ask", content=b" " * (2**22 + 1)).status_code == 413
